// A small HTTP server for one page and its answers: GET and HEAD, no bodies, one request in a connection.
//
// Whoever can reach the port may send anything, so each connection has a budget: the head of a request is at
// most kMostHeadBytes and is there within kSeconds, as the reply is read by then. Anything else is refused
// with a 4xx and {"error": "..."}, and so is a Host that is not this machine's (a foreign page whose name was
// made to point here, "DNS rebinding"). Clients beyond kThreads wait in line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tbdsim {

struct WebRequest {
  std::string path;  // "/report"
  std::vector<std::pair<std::string, std::string>>
      parameters;  // of the query, decoded; a key's in their order
};

struct WebReply {
  int status = 200;
  std::string type = "application/json";
  std::shared_ptr<const std::string> body;
};

struct WebAddress {
  std::string address = "127.0.0.1";  // or another one of this machine, 0.0.0.0 for all
  int port = 0;                       // 0: one that is free
  std::vector<std::string> hosts{};   // further names by which this machine is called
};

class WebServer {
 public:
  static constexpr std::size_t kMostHeadBytes = 8000;
  static constexpr int kSeconds = 5;
  static constexpr int kThreads = 16;

  // Called by several threads at a time. What it throws is a reply: Error is the client's (400), others are
  // bugs (500).
  using Handler = std::function<WebReply(const WebRequest&)>;

  // Listens from here on. Throws UsageError where it cannot.
  WebServer(WebAddress address, Handler handler);
  ~WebServer();  // ends what is under way first
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  [[nodiscard]] int port() const;
  // Until `tick`, which is called ten times a second, throws. UsageError where the system takes the port
  // away.
  void wait(const std::function<void()>& tick) const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

// Whether a Host header names this machine: the address listened on, localhost, 127.0.0.1, [::1], one of
// `hosts`; any address, but no other name, where all are listened on. A port behind it may be any.
[[nodiscard]] bool is_own_host(const std::string& host, const WebAddress& address);

// {"error": "..."}
[[nodiscard]] WebReply error_reply(int status, const std::string& what);

}  // namespace tbdsim
