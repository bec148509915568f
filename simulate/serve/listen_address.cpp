#include "simulate/serve/listen_address.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace tbdsim {
namespace {

bool is_numeric_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

// "lab7:8080" -> "lab7", "[::1]:80" -> "::1".
std::string without_port(const std::string& host) {
  const std::size_t colon = host.find_last_of(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  const std::string name = has_port ? host.substr(0, colon) : host;
  const bool bracketed = name.starts_with('[') && name.ends_with(']');
  return bracketed ? name.substr(1, name.size() - 2) : name;
}

}  // namespace

bool is_own_host(const std::string& host, const ListenAddress& address) {
  const std::string name = without_port(host);
  if (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == address.address) return true;
  if (std::find(address.hosts.begin(), address.hosts.end(), name) != address.hosts.end()) return true;
  const bool all = address.address == "0.0.0.0" || address.address == "::";
  return all && is_numeric_address(name);
}

bool is_own_page(const std::string& origin, const std::string& host) {
  return origin.empty() || origin == "http://" + host;
}

}  // namespace tbdsim
