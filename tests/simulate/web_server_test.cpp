// The server of `tbd-sim serve` from the outside: what it answers, and what it refuses.
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hwspecs/base/error.h"
#include "simulate/serve/http_server.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A connection that says what it is told to, and hears what comes back until the other side ends it.
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
  bool say(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  [[nodiscard]] std::string hear() const {
    std::string heard;
    std::array<char, 4096> part{};
    for (ssize_t count = 0; (count = ::recv(socket_, part.data(), part.size(), 0)) > 0;)
      heard.append(part.data(), static_cast<std::size_t>(count));
    return heard;
  }

 private:
  int socket_;
  bool connected_ = false;
};

class WebServerTest : public testing::Test {
 protected:
  static WebReply answer(const WebRequest& request) {
    if (request.path == "/wrong") throw UsageError("batch 0 is wrong");
    if (request.path == "/bug") throw std::logic_error("a bug");
    std::string text = request.path;
    for (const auto& [key, value] : request.parameters) text += "|" + key + "=" + value;
    return {.type = "text/plain", .body = std::make_shared<const std::string>(text)};
  }

  [[nodiscard]] std::string ask(const std::string& request) const {
    const Client client(server_.port());
    EXPECT_TRUE(client.say(request));
    return client.hear();
  }
  [[nodiscard]] std::string get(const std::string& target, const std::string& more = "") const {
    return ask("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n");
  }

  const WebServer server_{{}, answer};
};

TEST_F(WebServerTest, AnswersWithWhatTheHandlerSays) {
  const std::string reply = get("/report?set=a%3D1&set=b+2&set=c=d=%2B5%&model=x&&flag&=");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Cache-Control: no-store\r\n"));
  EXPECT_THAT(reply, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n/report|set=a=1|set=b 2|set=c=d=+5%|model=x|flag=|="));
  const std::string head = ask("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_F(WebServerTest, RepliesAreWholeAndNotCompressed) {
  EXPECT_THAT(get("/abc", "Range: bytes=0-1,0-1,0-1\r\n"), EndsWith("\r\n\r\n/abc"));
  EXPECT_THAT(get("/a", "Accept-Encoding: gzip, br\r\n"), EndsWith("\r\n\r\n/a"));
}

TEST_F(WebServerTest, SaysWhatIsWrongAsJson) {
  const auto refused = [](const std::string& reply, int status, const std::string& what) {
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 " + std::to_string(status) + " "));
    EXPECT_THAT(reply, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"error\":\"" + what + "\"}\n"));
  };
  refused(get("/wrong"), 400, "batch 0 is wrong");
  refused(get("/bug"), 500, "internal error: a bug");
  refused(ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"), 405,
          "'POST' is not answered; expected GET");
  refused(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403,
          "Host 'evil.example' is not this machine");
  refused(ask("GET / HTTP/1.1\r\n\r\n"), 403, "Host '' is not this machine");
  refused(ask("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"), 403,
          "Host 'localhost' is not this machine");
  refused(ask("hello\r\n\r\n"), 400, "malformed request");
}

TEST_F(WebServerTest, RefusesWhatIsTooLong) {
  const std::string most(WebServer::kMostHeadBytes, 'a');
  EXPECT_THAT(get("/" + most), StartsWith("HTTP/1.1 431 "));
  const std::string reply = get("/", "X: " + most + "\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"error\":\"the request is too long\"}\n"));
  const Client endless(server_.port());
  bool went = endless.say("GET / HTTP/1.1\r\n");
  const std::string part(100'000, 'b');
  for (int i = 0; i < 200 && went; ++i) went = endless.say(part);  // 20 MB without an end
  EXPECT_FALSE(went) << "all of an endless head was read";
  EXPECT_THAT(get("/a"), EndsWith("/a"));
}

// As many as there are threads say nothing, or never hear: the next one still gets its answer.
TEST_F(WebServerTest, SilentClientsAreLeftAlone) {
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < WebServer::kThreads; ++i) {
    silent.push_back(std::make_unique<Client>(server_.port()));
    ASSERT_TRUE(silent.back()->connected());
    if (i % 2 == 0) silent.back()->say("GET / HT");
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(get("/a"), EndsWith("/a"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2 * WebServer::kSeconds));
  EXPECT_THAT(silent[0]->hear(), AllOf(StartsWith("HTTP/1.1 408 "),
                                       EndsWith("{\"error\":\"the request did not come in time\"}\n")));
  EXPECT_EQ(silent[1]->hear(), "");
}

TEST(WebServerEnd, DoesNotWaitForClients) {
  auto server =
      std::make_unique<WebServer>(WebAddress{}, [](const WebRequest&) { return error_reply(404, "none"); });
  const int port = server->port();
  const Client silent(port);
  const auto began = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_FALSE(Client(port).connected());
}

TEST(WebServerStart, APortBelongsToOne) {
  const auto none = [](const WebRequest&) { return error_reply(404, "none"); };
  const WebServer first({}, none);
  EXPECT_THROW(WebServer({.port = first.port()}, none), UsageError);
  EXPECT_THROW(WebServer({.address = "192.0.2.1"}, none), UsageError);  // of nobody: RFC 5737
}

TEST(WebServerHosts, AreThoseOfThisMachine) {
  const WebAddress usual;
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80"})
    EXPECT_TRUE(is_own_host(host, usual)) << host;
  for (const char* host :
       {"", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "10.0.0.1", "localhost@evil.example", "[::2]", "::", ":", "127.0.0.2"})
    EXPECT_FALSE(is_own_host(host, usual)) << host;
  const WebAddress all{.address = "0.0.0.0", .hosts = {"lab7"}};
  for (const char* host : {"10.0.0.1:80", "lab7:80", "localhost", "[fe80::1]:80"})
    EXPECT_TRUE(is_own_host(host, all)) << host;
  EXPECT_FALSE(is_own_host("evil.example", all));
}

}  // namespace
}  // namespace tbdsim
