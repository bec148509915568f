// A small HTTP server for one page and its answers: GET, HEAD, and POST with a file as its body; one request
// a connection.
//
//   one thread (Boost.Asio)      accepts, reads heads of requests, writes replies; an idle connection costs a socket
//   kMostWorkers threads, or     call the handler; further requests wait in line
//   as many as there are cores
//
// Clients are not trusted, so each connection has a budget: the head of a request has at most kMostHeadBytes
// and arrives within kSeconds, a body at most kMostBodyBytes, within kBodySeconds, one at a time; the reply
// is read within kSeconds. Connections beyond kMostConnections wait to be accepted. Anything else is refused
// with a 4xx or 503 and {"error": "..."}, and so is a Host that is not this machine's, or a POST of another
// site's page.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "simulate/serve/listen_address.h"
#include "simulate/serve/request_target.h"

namespace tbdsim {

struct HttpRequest {
  std::string path;            // "/report"
  QueryParameters parameters;  // of the query
  bool posted = false;         // POST: `body` is what was sent
  std::string body{};
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::shared_ptr<const std::string> body;
};

class HttpServer {
 public:
  static constexpr std::size_t kMostHeadBytes = 8000;
  static constexpr int kSeconds = 5;
  static constexpr std::size_t kMostBodyBytes = std::size_t{1} << 27U;  // an ONNX file with its weights
  static constexpr int kBodySeconds = 60;
  static constexpr int kMostConnections = 256;
  static constexpr unsigned kMostWorkers = 16;

  // Called by several threads at a time. Exceptions become replies: Error is the client's fault (400), any
  // other is a bug (500).
  using Handler = std::function<HttpReply(HttpRequest)>;

  // Listens from here on. Throws UsageError where the address or the port is not available.
  HttpServer(ListenAddress address, Handler handler);
  ~HttpServer();  // returns once running calls of the handler have; waiting requests are dropped
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  // Calls `tick` ten times a second, and when a signal arrives, until it throws. Throws UsageError where the
  // system closed the port.
  void wait(const std::function<void()>& tick) const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

// {"error": "..."}
[[nodiscard]] HttpReply error_reply(int status, const std::string& what);

}  // namespace tbdsim
