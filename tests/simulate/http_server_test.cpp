// The HTTP server of `tbd-sim serve` over real sockets: what it answers, what it refuses, what it bears.
#include "simulate/serve/http_server.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

using std::chrono::steady_clock;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  bool send(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  void end_request() const { ::shutdown(socket_, SHUT_WR); }
  // Everything until the server closes.
  [[nodiscard]] std::string receive() const {
    std::string received;
    std::array<char, 4096> part{};
    for (ssize_t count = 0; (count = ::recv(socket_, part.data(), part.size(), 0)) > 0;)
      received.append(part.data(), static_cast<std::size_t>(count));
    return received;
  }
  // Neither answered nor closed by the server.
  [[nodiscard]] bool waits() const {
    char byte = 0;
    return ::recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
  }

 private:
  int socket_;
  bool connected_ = false;
};

// Clients that send nothing, or, every other one, half a request.
std::vector<std::unique_ptr<Client>> idle_clients(int count, int port) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(port));
    EXPECT_TRUE(clients.back()->connected());
    if (i % 2 == 0) clients.back()->send("GET / HT");
  }
  return clients;
}

std::shared_ptr<const std::string> body(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

HttpReply echo(const HttpRequest& request) {
  if (request.path == "/wrong") throw UsageError("batch 0 is wrong");
  if (request.path == "/bug") throw std::logic_error("a bug");
  if (request.path == "/large") return {.body = body(std::string(20'000'000, 'x'))};
  std::string text = request.path;
  if (request.posted) text += "(" + std::to_string(request.body.size()) + ")";
  for (const auto& [key, value] : request.parameters) text += "|" + key + "=" + value;
  return {.type = "text/plain", .body = body(text)};
}

class HttpServerTest : public testing::Test {
 protected:
  [[nodiscard]] std::string request(const std::string& text) const {
    const Client client(server_.port());
    EXPECT_TRUE(client.send(text));
    return client.receive();
  }
  [[nodiscard]] std::string get(const std::string& target, const std::string& fields = "") const {
    return request("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n");
  }

  const HttpServer server_{{}, echo};
};

TEST_F(HttpServerTest, RepliesWithWhatTheHandlerReturns) {
  const std::string reply = get("/report?set=a%3D1&set=b+2&set=c=d=%2B5%&model=x&&flag&=");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* field :
       {"Cache-Control: no-store", "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY",
        "Referrer-Policy: no-referrer", "Content-Type: text/plain", "Connection: close"})
    EXPECT_THAT(reply, HasSubstr(std::string(field) + "\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n/report|set=a=1|set=b 2|set=c=d=+5%|model=x|flag=|="));
}

TEST_F(HttpServerTest, HeadHasTheFieldsOfGetAndNoBody) {
  const std::string head = request("HEAD /abc HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, RepliesAreWholeAndNotCompressed) {
  EXPECT_THAT(get("/abc", "Range: bytes=0-1,0-1,0-1\r\n"), EndsWith("\r\n\r\n/abc"));
  EXPECT_THAT(get("/a", "Accept-Encoding: gzip, br\r\n"), EndsWith("\r\n\r\n/a"));
}

TEST_F(HttpServerTest, TakesABodyAndOneAtATime) {
  const std::string head = "POST /file?name=a HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n";
  const std::string bytes(1'000'000, 'x');
  EXPECT_THAT(request(head + "Content-Length: 1000000\r\n\r\n" + bytes), EndsWith("/file(1000000)|name=a"));
  EXPECT_THAT(request(head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
              EndsWith("/file(3)|name=a"));
  const Client slow(server_.port());
  slow.send(head + "Content-Length: 1000000\r\n\r\nabc");
  while (!request(head + "Content-Length: 3\r\n\r\nabc").starts_with("HTTP/1.1 503 ")) {
  }
  EXPECT_THAT(get("/abc"), EndsWith("\r\n\r\n/abc")) << "a page is served meanwhile";
  slow.end_request();
  EXPECT_THAT(slow.receive(), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(request(head + "Content-Length: 3\r\n\r\nabc"), EndsWith("/file(3)|name=a"));
}

TEST_F(HttpServerTest, RefusalsAreJson) {
  const auto expect_refused = [](const std::string& reply, int status, const std::string& what) {
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 " + std::to_string(status) + " "));
    EXPECT_THAT(reply, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"error\":\"" + what + "\"}\n"));
  };
  expect_refused(get("/wrong"), 400, "batch 0 is wrong");
  expect_refused(get("/bug"), 500, "internal error: a bug");
  expect_refused(request("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"), 405,
                 "'PUT' is not answered; expected GET or POST");
  expect_refused(request("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n"), 413,
                 "the file is too large; expected at most 128 MiB");
  expect_refused(
      request("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"), 413,
      "the file is too large; expected at most 128 MiB");
  expect_refused(request("POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
                         "Content-Length: 3\r\n\r\nabc"),
                 403, "a page of 'http://evil.example' may send nothing");
  expect_refused(request("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403,
                 "Host 'evil.example' is not this machine");
  expect_refused(request("GET / HTTP/1.1\r\n\r\n"), 403, "Host '' is not this machine");
  expect_refused(request("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"), 403,
                 "Host 'localhost' is not this machine");
  expect_refused(request("hello\r\n\r\n"), 400, "malformed request");
  expect_refused(request("GET / HTTP/9.9\r\nHost: localhost\r\n\r\n"), 400, "malformed request");
}

TEST_F(HttpServerTest, ARequestThatEndsTooEarlyIsMalformed) {
  const Client client(server_.port());
  client.send("GET / HTTP/1.1\r\nHo");
  client.end_request();
  EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 400 "));
  const Client nothing(server_.port());
  nothing.end_request();
  EXPECT_EQ(nothing.receive(), "");
}

TEST_F(HttpServerTest, RefusesHeadsThatAreTooLong) {
  const std::string start = "GET /a HTTP/1.1\r\nHost: localhost\r\nX: ";
  const auto of_size = [&](std::size_t bytes) {
    return start + std::string(bytes - start.size() - 4, 'x') + "\r\n\r\n";
  };
  EXPECT_THAT(request(of_size(HttpServer::kMostHeadBytes)), EndsWith("\r\n\r\n/a"));
  const std::string reply = request(of_size(HttpServer::kMostHeadBytes + 1));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"error\":\"the request is too long\"}\n"));
  EXPECT_THAT(get("/" + std::string(HttpServer::kMostHeadBytes, 'a')), StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, StopsReadingAnEndlessHead) {
  const Client endless(server_.port());
  bool sent = endless.send("GET / HTTP/1.1\r\n");
  const std::string part(100'000, 'b');
  for (int i = 0; i < 200 && sent; ++i) sent = endless.send(part);  // 20 MB
  EXPECT_FALSE(sent) << "all of an endless head was read";
  EXPECT_THAT(get("/a"), EndsWith("/a"));
}

TEST_F(HttpServerTest, IdleConnectionsDoNotDelayAnAnswer) {
  const auto idle = idle_clients(100, server_.port());
  EXPECT_THAT(get("/a"), EndsWith("\r\n\r\n/a"));
  for (const auto& client : idle)
    EXPECT_TRUE(client->waits()) << "the answer came after a connection was closed";
}

TEST_F(HttpServerTest, AFullHouseIsClearedInTime) {
  const auto idle = idle_clients(HttpServer::kMostConnections, server_.port());
  const auto began = steady_clock::now();
  EXPECT_THAT(get("/a"), EndsWith("\r\n\r\n/a"));
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(2 * HttpServer::kSeconds));
  EXPECT_THAT(idle[0]->receive(), AllOf(StartsWith("HTTP/1.1 408 "),
                                        EndsWith("{\"error\":\"the request did not come in time\"}\n")));
  EXPECT_EQ(idle[1]->receive(), "");
}

TEST_F(HttpServerTest, AReplyThatIsNotReadIsGivenUp) {
  const Client deaf(server_.port());
  EXPECT_TRUE(deaf.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  std::this_thread::sleep_for(std::chrono::seconds(HttpServer::kSeconds + 1));
  EXPECT_LT(deaf.receive().size(), 20'000'000U);
}

TEST(HttpServerEnd, DoesNotWaitForClients) {
  auto server = std::make_unique<HttpServer>(ListenAddress{}, echo);
  const int port = server->port();
  const auto idle = idle_clients(20, port);
  const auto began = steady_clock::now();
  server.reset();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_FALSE(Client(port).connected());
}

TEST(HttpServerEnd, WaitsForTheHandler) {
  std::atomic<bool> called = false;
  std::atomic<bool> returned = false;
  auto server = std::make_unique<HttpServer>(ListenAddress{}, [&](const HttpRequest&) {
    called = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    returned = true;
    return error_reply(404, "none");
  });
  const Client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while (!called) std::this_thread::yield();
  server.reset();
  EXPECT_TRUE(returned);
}

TEST(HttpServerStart, APortBelongsToOne) {
  const HttpServer first({}, echo);
  EXPECT_THROW(HttpServer({.port = first.port()}, echo), UsageError);
}

TEST(HttpServerStart, ListensOnAddressesOfThisMachine) {
  const auto refusal = [](const std::string& address) {
    try {
      const HttpServer server({.address = address}, echo);
    } catch (const UsageError& wrong) {
      return std::string(wrong.what());
    }
    return std::string("(listens)");
  };
  EXPECT_EQ(refusal("192.0.2.1"),
            "port 0 of '192.0.2.1' cannot be listened on: Cannot assign requested address");
  EXPECT_EQ(refusal("no such address"),
            "port 0 of 'no such address' cannot be listened on: no address of this machine");
  EXPECT_EQ(refusal("localhost"), "(listens)");
}

TEST(ListenAddress, NamesOfThisMachine) {
  const ListenAddress usual;
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80"})
    EXPECT_TRUE(is_own_host(host, usual)) << host;
  for (const char* host :
       {"", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "10.0.0.1", "localhost@evil.example", "[::2]", "::", ":", "127.0.0.2"})
    EXPECT_FALSE(is_own_host(host, usual)) << host;
  const ListenAddress all{.address = "0.0.0.0", .hosts = {"lab7"}};
  for (const char* host : {"10.0.0.1:80", "lab7:80", "localhost", "[fe80::1]:80"})
    EXPECT_TRUE(is_own_host(host, all)) << host;
  EXPECT_FALSE(is_own_host("evil.example", all));
}

}  // namespace
}  // namespace tbdsim
