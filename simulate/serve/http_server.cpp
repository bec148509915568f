#include "simulate/serve/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr int kGlance = 100;  // ms after which it is looked whether the server ends

// A connection whose request was read already: what is written goes out, until the time is up.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const std::atomic<bool>& ends, std::string head = {})
      : socket_(socket), ends_(ends), head_(std::move(head)) {}

  // The head of the request, without what follows it; or the status of the reply that says what is wrong.
  int read_head() {
    std::array<char, 2048> part{};
    while (head_.find(kEndOfHead) == std::string::npos) {
      if (head_.size() > WebServer::kMostHeadBytes) return 431;
      if (!wait_for(POLLIN)) return head_.empty() ? 0 : 408;
      const ssize_t count = ::recv(socket_, part.data(), part.size(), 0);
      if (count <= 0) return head_.empty() ? 0 : 400;
      head_.append(part.data(), static_cast<std::size_t>(count));
    }
    head_.resize(head_.find(kEndOfHead) + kEndOfHead.size());
    return head_.size() > WebServer::kMostHeadBytes ? 431 : 200;
  }

  // Closing at once would throw away what is on its way if the client still sends.
  void close() {
    ::shutdown(socket_, SHUT_WR);
    std::array<char, 4096> part{};
    constexpr int kMostParts = 256;
    for (int i = 0; i < kMostParts && wait_for(POLLIN); ++i) {
      if (::recv(socket_, part.data(), part.size(), 0) <= 0) break;
    }
    ::close(socket_);
  }

  [[nodiscard]] bool is_readable() const override { return at_ < head_.size(); }
  [[nodiscard]] bool is_writable() const override { return wait_for(POLLOUT); }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = head_.copy(to, size, at_);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (!replies_) until_ = Clock::now() + std::chrono::seconds(WebServer::kSeconds);
    replies_ = true;
    return wait_for(POLLOUT) ? ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
  }
  using httplib::Stream::write;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  [[nodiscard]] bool wait_for(short what) const {
    while (!ends_ && Clock::now() < until_) {
      pollfd entry{.fd = socket_, .events = what, .revents = 0};
      if (::poll(&entry, 1, kGlance) > 0) return true;
    }
    return false;
  }

  int socket_;
  const std::atomic<bool>& ends_;
  std::string head_;
  std::size_t at_ = 0;  // up to which it was read
  bool replies_ = false;
  Clock::time_point until_ = Clock::now() + std::chrono::seconds(WebServer::kSeconds);
};

const char* reason_of(int status) {
  switch (status) {
    case 400:
      return "malformed request";
    case 404:
      return "there is nothing here; expected /";
    case 408:
      return "the request did not come in time";
    case 414:
    case 431:
      return "the request is too long";
    default:
      return "the request cannot be answered";
  }
}

void send_reply(httplib::Response& response, const WebReply& reply) {
  response.status = reply.status;
  // As a provider, which the library does not compress: that would take longer than the answer.
  response.set_content_provider(
      reply.body->size(), reply.type,
      [body = reply.body](std::size_t offset, std::size_t, httplib::DataSink& sink) {
        return sink.write(body->data() + offset, body->size() - offset);
      });
}

// "a%3D1+b" -> "a=1 b"; what is no escape stays as it is.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      plain += static_cast<char>(code);
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

// Behind the '?', in their order. The library's own would cut a value at its last '='.
std::vector<std::pair<std::string, std::string>> parameters_of(std::string_view target) {
  std::vector<std::pair<std::string, std::string>> parameters;
  std::size_t at = target.find('?');
  while (at < target.size()) {
    const std::size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string_view part = target.substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (!part.empty()) parameters.emplace_back(decoded(part.substr(0, equals)), decoded(value));
    at = end;
  }
  return parameters;
}

bool is_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

}  // namespace

class WebServer::Listener : public httplib::Server {
 public:
  Listener(WebAddress address, WebServer::Handler handler)
      : address_(std::move(address)), handler_(std::move(handler)) {
    new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // the library deletes it
    set_socket_options([](int socket) {  // no SO_REUSEPORT: a port belongs to one program
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    set_default_headers({{"Cache-Control", "no-store"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"X-Frame-Options", "DENY"},
                         {"Referrer-Policy", "no-referrer"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      send_reply(response, reply_to(request));
      return HandlerResponse::Handled;
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.content_length_ == 0)
        send_reply(response, error_reply(response.status, reason_of(response.status)));
    });
    bind();
    thread_ = std::thread([this] {
      listen_after_bind();
      ends_ = true;
    });
    while (!is_running() && !ends_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Listener() override {
    ends_ = true;
    stop();
    thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] bool ended() const { return ends_; }

 private:
  void bind() {
    errno = 0;
    if (address_.port == 0) {
      port_ = bind_to_any_port(address_.address);
    } else {
      port_ = bind_to_port(address_.address, address_.port) ? address_.port : -1;
    }
    if (port_ < 0) {
      throw UsageError(fmt::format("port {} of {} cannot be listened on: {}", address_.port,
                                   in_quotes(address_.address),
                                   errno == 0 ? "no address of this machine" : std::strerror(errno)));
    }
    constexpr int kBacklog = 128;  // the library's five are few
    ::listen(svr_sock_, kBacklog);
  }

  // In the library's place, which would read without end what has no end.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, ends_);
    const int status = connection.read_head();
    if (status == 200) {
      bool closed = false;
      // Parts of a reply are not sent: a thousand overlapping ones would be a thousand times as long.
      process_request(connection, true, closed, [](httplib::Request& request) { request.ranges.clear(); });
    } else if (status != 0) {
      const WebReply reply = error_reply(status, reason_of(status));
      connection.write(
          fmt::format("HTTP/1.1 {} Refused\r\nConnection: close\r\nContent-Type: application/json\r\n"
                      "Content-Length: {}\r\n\r\n{}",
                      status, reply.body->size(), *reply.body));
    }
    connection.close();
    return true;
  }

  [[nodiscard]] WebReply reply_to(const httplib::Request& request) const {
    if (request.method != "GET" && request.method != "HEAD")
      return error_reply(405, in_quotes(request.method) + " is not answered; expected GET");
    if (request.get_header_value_count("Host") != 1 ||
        !is_own_host(request.get_header_value("Host"), address_))
      return error_reply(403, "Host " + in_quotes(request.get_header_value("Host")) + " is not this machine");
    try {
      return handler_({request.path, parameters_of(request.target)});
    } catch (const Error& wrong) {
      return error_reply(400, wrong.what());
    } catch (const std::exception& bug) {
      return error_reply(500, std::string("internal error: ") + bug.what());
    }
  }

  WebAddress address_;
  WebServer::Handler handler_;
  int port_ = -1;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

WebServer::WebServer(WebAddress address, Handler handler)
    : listener_(std::make_unique<Listener>(std::move(address), std::move(handler))) {}

WebServer::~WebServer() = default;

int WebServer::port() const { return listener_->port(); }

void WebServer::wait(const std::function<void()>& tick) const {
  for (;;) {
    tick();
    if (listener_->ended()) throw UsageError(fmt::format("port {} can no longer be listened on", port()));
    ::poll(nullptr, 0, kGlance);  // which a signal ends
  }
}

bool is_own_host(const std::string& host, const WebAddress& address) {
  const std::size_t colon = host.find_last_of(':');
  const bool port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  std::string name = port ? host.substr(0, colon) : host;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  if (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == address.address) return true;
  if (std::find(address.hosts.begin(), address.hosts.end(), name) != address.hosts.end()) return true;
  const bool all = address.address == "0.0.0.0" || address.address == "::";
  return all && is_address(name);
}

WebReply error_reply(int status, const std::string& what) {
  const nlohmann::json json{{"error", what}};
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  return {.status = status, .type = "application/json", .body = std::make_shared<const std::string>(text)};
}

}  // namespace tbdsim
