#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/status/status_server.hpp"
#include "http_client.hpp"
#include "long_tests.hpp"
#include "status/http_answer.hpp"

// What a status page does with bytes that nobody should send.
namespace batchrpc::status {
namespace hostile_requests_test {

using test::get;
using test::port_of;
using test::RawClient;

const std::array<std::string, 8> kRequests{
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /status.json HTTP/1.1\r\nHost: localhost:80\r\nAccept: */*\r\nConnection: "
    "keep-alive\r\n\r\n",
    "HEAD /metrics HTTP/1.0\r\nHost: [::1]\r\n\r\n",
    "GET /trace?seconds=0&seconds=%31 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    "PUT /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
    "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET /%00%ff%zz?a=%&=&& HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1,5-,-9\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nSec-Fetch-Site: none\r\n\r\n",
};

/// One of these with some bytes changed, cut out or doubled; or just bytes.
class Requests {
 public:
  explicit Requests(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    if (below(10) == 0) {
      std::string bytes(below(300), '\0');
      std::generate(bytes.begin(), bytes.end(), [this] { return static_cast<char>(below(256)); });
      return below(2) == 0 ? bytes : bytes + "\r\n\r\n";
    }
    std::string text = kRequests.at(below(kRequests.size()));
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1);
      const std::size_t length = std::min(below(20), text.size() - at);
      switch (below(5)) {
        case 0:
          if (at < text.size()) text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(at, length));
          break;
        case 3:
          text.insert(at, below(4), "\r\n :%\0/?"[below(8)]);
          break;
        default:
          text.insert(at, kRequests.at(below(kRequests.size())).substr(0, below(60)));
      }
    }
    if (below(500) == 0) text.insert(text.size() / 2, 20'000, 'a');
    return text;
  }

 private:
  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit);
  }
  std::mt19937_64 random_;
};

// Several connections at a time, so that client and server need not wait for one another with each.
TEST_CASE("10^5 malformed requests are answered, refused or dropped, and the page goes on") {
  const Node node({.name = "target", .logging = {.level = LogLevel::error}});
  const StatusServer page(node);
  constexpr int kClients = 4;
  constexpr int kAtOnce = 10;
  constexpr int kWanted = batchrpc::test::less_if_sanitized(100'000);
  std::atomic<int> sent{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      Requests requests(static_cast<std::uint64_t>(client) + 1);
      for (int round = 0; round < kWanted / kClients / kAtOnce; ++round) {
        std::vector<RawClient> connections;
        for (int i = 0; i < kAtOnce; ++i) {
          connections.emplace_back(port_of(page.address())).send(requests.next());
          connections.back().end_sending();
        }
        for (RawClient& connection : connections) {
          (void)connection.read_all();
          connection.reset();
          ++sent;
        }
      }
    });
  }
  for (std::thread& client : clients)
    client.join();
  REQUIRE(sent == kWanted);
  CHECK(get(page.address(), "/").status == 200);
  CHECK(get(page.address(), "/status.json").status == 200);
}

TEST_CASE("10^5 malformed heads get an answer that is one, whatever they are") {
  const HttpAnswerer answerer([](const HttpRequest& request) {
    return HttpReply{.body = request.path + request.host + request.seconds};
  });
  Requests requests(99);
  for (int i = 0; i < 100'000; ++i) {
    const std::string answer = answerer.answer(requests.next());
    if (!answer.starts_with("HTTP/1.1 ") || answer.find("\r\n\r\n") == std::string::npos) {
      FAIL("the answer is '" << answer << "'");
    }
  }
}

}  // namespace hostile_requests_test
}  // namespace batchrpc::status
