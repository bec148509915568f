// Where the server listens, and the names by which browsers may call it.
#pragma once

#include <string>
#include <vector>

namespace tbdsim {

struct ListenAddress {
  std::string address = "127.0.0.1";  // an address of this machine; 0.0.0.0 or ::, all of them
  int port = 0;                       // 0: a free one
  std::vector<std::string> hosts{};   // further names of this machine
};

// True if a Host header names this machine: localhost, 127.0.0.1, [::1], the address listened on or one of
// `hosts`, with any port. Where all addresses are listened on, any numeric address does too. A page of
// another site whose name was made to resolve to this machine (DNS rebinding) fails this check.
[[nodiscard]] bool is_own_host(const std::string& host, const ListenAddress& address);

// True if a request that changes something may come from this page: its Origin is http://HOST of the same
// request, or there is none, as browsers always send one with a POST.
[[nodiscard]] bool is_own_page(const std::string& origin, const std::string& host);

}  // namespace tbdsim
