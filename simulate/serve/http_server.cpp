#include "simulate/serve/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Request = http::request<http::string_body>;
using ReplyBody = http::span_body<const char>;

constexpr int kBacklog = 128;  // connections that the system holds until they are accepted
constexpr int kTick = 100;     // ms
constexpr std::size_t kMostDrainedBytes = 1'000'000;

// State that all connections share.
struct Service {
  asio::io_context io{1};
  asio::thread_pool workers;
  std::function<std::optional<HttpReply>(const Request&)> refusal;  // of a head, before the body is read
  std::function<HttpReply(Request)> answer;
  std::function<void()> connection_ended;
  bool reads_body = false;  // one connection does
};

const char* reason_of(int status) {
  switch (status) {
    case 408:
      return "the request did not come in time";
    case 413:
      return "the file is too large; expected at most 128 MiB";
    case 431:
      return "the request is too long";
    default:
      return "malformed request";
  }
}

// One client: read_request -> read_body (of a POST) -> answer (by a worker) -> write_reply -> drain -> end.
// All but the answer runs on the thread of Service::io.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Service& service)
      : service_(service), socket_(std::move(socket)), deadline_(service.io) {
    parser_.header_limit(HttpServer::kMostHeadBytes);
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());  // until the head has been judged
  }

  void read_request() {
    start_deadline(HttpServer::kSeconds);
    http::async_read_header(
        socket_, buffer_, parser_,
        [self = shared_from_this()](error_code error, std::size_t bytes) { self->head_read(error, bytes); });
  }

 private:
  void head_read(error_code error, std::size_t bytes) {
    deadline_.cancel();
    // The parser's limit is one for the first line and one for the fields.
    if (!error && bytes > HttpServer::kMostHeadBytes) error = http::error::header_limit;
    if (error) {
      refuse(error);
    } else if (auto refused = service_.refusal(parser_.get())) {
      write_reply(std::move(*refused));
    } else if (parser_.get().method() == http::verb::post) {
      read_body();
    } else {
      answer();
    }
  }

  void read_body() {
    if (service_.reads_body) {
      write_reply(error_reply(503, "another file is being read; expected one at a time"));
      return;
    }
    if (parser_.content_length().value_or(0) > HttpServer::kMostBodyBytes) {
      write_reply(error_reply(413, reason_of(413)));
      return;
    }
    service_.reads_body = true;
    parser_.body_limit(HttpServer::kMostBodyBytes);
    start_deadline(HttpServer::kBodySeconds);
    http::async_read(socket_, buffer_, parser_, [self = shared_from_this()](error_code error, std::size_t) {
      self->deadline_.cancel();
      self->service_.reads_body = false;
      error ? self->refuse(error) : self->answer();
    });
  }

  // After so many seconds no more of the request is read, or the rest of the reply is dropped.
  void start_deadline(int seconds) {
    deadline_.expires_after(std::chrono::seconds(seconds));
    deadline_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (cancelled) return;
      error_code ignored;
      if (self->serializer_) {
        self->socket_.close(ignored);
      } else {
        self->late_ = true;
        self->socket_.shutdown(tcp::socket::shutdown_receive, ignored);
      }
    });
  }

  void refuse(error_code error) {
    const bool too_large = error == http::error::body_limit;
    const bool too_long = error == http::error::header_limit || error == http::error::buffer_overflow;
    const bool malformed = error.category() == make_error_code(http::error::header_limit).category();
    if (!parser_.got_some() || !malformed) {  // nothing came, or the connection broke
      end();
      return;
    }
    const int status = too_large ? 413 : too_long ? 431 : late_ ? 408 : 400;
    write_reply(error_reply(status, reason_of(status)));
  }

  void answer() {
    head_only_ = parser_.get().method() == http::verb::head;
    asio::post(service_.workers, [self = shared_from_this()] {
      HttpReply reply = self->service_.answer(self->parser_.release());
      asio::post(self->service_.io,
                 [self, reply = std::move(reply)]() mutable { self->write_reply(std::move(reply)); });
    });
  }

  void write_reply(HttpReply reply) {
    reply_ = std::move(reply);
    response_.result(static_cast<unsigned>(reply_.status));
    response_.set(http::field::content_type, reply_.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("X-Frame-Options", "DENY");
    response_.set("Referrer-Policy", "no-referrer");
    response_.body() = {reply_.body->data(), reply_.body->size()};
    response_.keep_alive(false);
    response_.prepare_payload();
    serializer_.emplace(response_);
    start_deadline(HttpServer::kSeconds);
    auto written = [self = shared_from_this()](error_code error, std::size_t) {
      error ? self->end() : self->drain();
    };
    if (head_only_) {
      http::async_write_header(socket_, *serializer_, std::move(written));
    } else {
      http::async_write(socket_, *serializer_, std::move(written));
    }
  }

  // Reads on until the client closes: a socket closed while the client still sends is reset, and the client
  // may lose the reply.
  void drain() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    drain_more();
  }

  void drain_more() {
    socket_.async_read_some(asio::buffer(drained_),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              self->part_drained(error, bytes);
                            });
  }

  void part_drained(error_code error, std::size_t bytes) {
    drained_bytes_ += bytes;
    if (error || drained_bytes_ > kMostDrainedBytes) {
      end();
    } else {
      drain_more();
    }
  }

  void end() {
    deadline_.cancel();
    error_code ignored;
    socket_.close(ignored);
    service_.connection_ended();
  }

  Service& service_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  bool late_ = false;  // the deadline passed while the request was read
  boost::beast::flat_buffer buffer_{HttpServer::kMostHeadBytes};
  http::request_parser<http::string_body> parser_;
  bool head_only_ = false;  // the request is HEAD: the reply has no body
  HttpReply reply_;
  http::response<ReplyBody> response_;
  std::optional<http::response_serializer<ReplyBody>> serializer_;  // from write_reply on
  std::array<char, 4096> drained_{};
  std::size_t drained_bytes_ = 0;
};

error_code listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  // Allows a port whose last connections are still closing; one that another program listens on is
  // refused.
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  return error;
}

tcp::acceptor listening_acceptor(asio::io_context& io, const ListenAddress& address) {
  error_code error;
  const auto endpoints =
      tcp::resolver(io).resolve(address.address, std::to_string(address.port),
                                tcp::resolver::passive | tcp::resolver::numeric_service, error);
  std::string why = "no address of this machine";
  for (const auto& entry : endpoints) {
    tcp::acceptor acceptor(io);
    error = listen_on(acceptor, entry.endpoint());
    if (!error) return acceptor;
    why = error.message();
  }
  throw UsageError(
      fmt::format("port {} of {} cannot be listened on: {}", address.port, in_quotes(address.address), why));
}

unsigned worker_count() {
  return std::clamp(std::thread::hardware_concurrency(), 2U, HttpServer::kMostWorkers);
}

}  // namespace

class HttpServer::Listener {
 public:
  Listener(ListenAddress address, HttpServer::Handler handler)
      : address_(std::move(address)),
        handler_(std::move(handler)),
        service_{.workers = asio::thread_pool(worker_count()),
                 .refusal = [this](const Request& request) { return refusal_of(request); },
                 .answer = [this](Request request) { return reply_to(std::move(request)); },
                 .connection_ended = [this] { connection_ended(); }},
        acceptor_(listening_acceptor(service_.io, address_)),
        retry_(service_.io),
        port_(acceptor_.local_endpoint().port()) {
    accept();
    thread_ = std::thread([this] { service_.io.run(); });
  }
  ~Listener() {
    service_.io.stop();
    thread_.join();
    service_.workers.stop();
    service_.workers.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] bool lost_port() const { return lost_port_; }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::bad_descriptor || error == asio::error::invalid_argument) {
        lost_port_ = true;
      } else if (error) {  // the client has gone, or this machine is short of something
        retry_.expires_after(std::chrono::milliseconds(kTick));
        retry_.async_wait([this](error_code) { accept(); });
      } else {
        std::make_shared<Connection>(std::move(socket), service_)->read_request();
        if (++connections_ < kMostConnections) accept();
      }
    });
  }

  void connection_ended() {
    if (connections_-- == kMostConnections) accept();
  }

  // The refusal of a request by its head; none for one that is answered.
  [[nodiscard]] std::optional<HttpReply> refusal_of(const Request& request) const {
    const bool posts = request.method() == http::verb::post;
    if (!posts && request.method() != http::verb::get && request.method() != http::verb::head)
      return error_reply(
          405, in_quotes(std::string(request.method_string())) + " is not answered; expected GET or POST");
    const std::string host(request[http::field::host]);
    if (request.count(http::field::host) != 1 || !is_own_host(host, address_))
      return error_reply(403, "Host " + in_quotes(host) + " is not this machine");
    const std::string origin(request[http::field::origin]);
    if (posts && !is_own_page(origin, host))
      return error_reply(403, "a page of " + in_quotes(origin) + " may send nothing");
    return std::nullopt;
  }

  [[nodiscard]] HttpReply reply_to(Request request) const {
    try {
      const std::string target(request.target());
      return handler_({.path = path_of(target),
                       .parameters = parameters_of(target),
                       .posted = request.method() == http::verb::post,
                       .body = std::move(request.body())});
    } catch (const Error& wrong) {
      return error_reply(400, wrong.what());
    } catch (const std::exception& bug) {
      return error_reply(500, std::string("internal error: ") + bug.what());
    }
  }

  ListenAddress address_;
  HttpServer::Handler handler_;
  Service service_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  int port_;
  int connections_ = 0;
  std::atomic<bool> lost_port_ = false;
  std::thread thread_;
};

HttpServer::HttpServer(ListenAddress address, Handler handler)
    : listener_(std::make_unique<Listener>(std::move(address), std::move(handler))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return listener_->port(); }

void HttpServer::wait(const std::function<void()>& tick) const {
  for (;;) {
    tick();
    if (listener_->lost_port()) throw UsageError(fmt::format("port {} can no longer be listened on", port()));
    ::poll(nullptr, 0, kTick);
  }
}

HttpReply error_reply(int status, const std::string& what) {
  const nlohmann::json json{{"error", what}};
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  return {.status = status, .type = "application/json", .body = std::make_shared<const std::string>(text)};
}

}  // namespace tbdsim
