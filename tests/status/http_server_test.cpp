#include "status/http_server.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "http_client.hpp"
#include "status/http_answer.hpp"

namespace batchrpc::status {
namespace http_server_test {

using test::Answer;
using test::ask;
using test::RawClient;
using namespace std::chrono_literals;

std::string echo(std::string_view head, const ClientGone& = {}) {
  return "HTTP/1.1 200 OK\r\n\r\n" + std::string(head.substr(0, head.find('\r')));
}

const ListenAddress kAnyPort{.host = "127.0.0.1", .port = 0};

TEST_CASE("a request may come byte by byte, and lines may end in a bare newline") {
  const HttpServer server(listen_at(kAnyPort), echo);
  const RawClient client(server.address().port);
  for (const char byte : std::string("GET /slow HTTP/1.1\nHost: x\n\n")) {
    client.send({&byte, 1});
    std::this_thread::sleep_for(1ms);
  }
  CHECK(Answer(client.read_all()).status == 200);
}

TEST_CASE("a port that is taken is a JoinFailed that names it and says what to do") {
  const HttpServer server(listen_at(kAnyPort), echo);
  CHECK_THROWS_AS(listen_at(server.address()), JoinFailed);
  CHECK_THROWS_WITH(listen_at(server.address()),
                    Catch::Contains(server.address().to_string()) &&
                        Catch::Contains("in use; choose another port, or 0"));
  CHECK_THROWS_AS(listen_at({.host = "203.0.113.7", .port = 0}), JoinFailed);
  CHECK_THROWS_AS(listen_at({.host = "no.such.host.invalid", .port = 0}), JoinFailed);
}

TEST_CASE("a port is free again as soon as its server has stopped") {
  ListenAddress address = kAnyPort;
  for (int round = 0; round < 3; ++round) {
    const HttpServer server(listen_at(address), echo);
    address = server.address();
    CHECK(ask(address.port, "GET / HTTP/1.1\r\n\r\n").status == 200);
  }
  CHECK_THROWS(RawClient(address.port));
}

TEST_CASE("a request whose head is too long is a 431, however it comes") {
  const HttpServer server(listen_at(kAnyPort), echo, {.head_bytes = 1000});
  CHECK(ask(server.address().port, "GET /" + std::string(5000, 'a')).status == 431);
  CHECK(ask(server.address().port, "GET / HTTP/1.1\r\nA: " + std::string(900, 'a') + "\r\n\r\n")
            .status == 200);
}

TEST_CASE("clients that send nothing, half a request, or read nothing hold up nobody else") {
  const std::string large(std::size_t{32} << 20, 'x');
  const HttpServer server(
      listen_at(kAnyPort),
      [&](std::string_view head, const ClientGone&) {
        return head.starts_with("GET /large") ? "HTTP/1.1 200 OK\r\n\r\n" + large : echo(head);
      },
      {.threads = 1, .head = 60s, .write = 60s});
  std::vector<RawClient> slow;
  for (int i = 0; i < 10; ++i) {
    slow.emplace_back(server.address().port);
    slow.emplace_back(server.address().port).send("GET / HTTP/1.1\r\nHos");
    slow.emplace_back(server.address().port).send("GET /large HTTP/1.1\r\n\r\n");
  }
  const auto began = std::chrono::steady_clock::now();
  CHECK(ask(server.address().port, "GET / HTTP/1.1\r\n\r\n").status == 200);
  CHECK(std::chrono::steady_clock::now() - began < 5s);
  CHECK(slow[2].read_all().size() > large.size());
}

TEST_CASE("with as many connections as there may be, the slowest has to go") {
  const HttpServer server(listen_at(kAnyPort), echo, {.connections = 4, .head = 60s});
  std::vector<RawClient> slow;
  for (int i = 0; i < 4; ++i)
    slow.emplace_back(server.address().port);
  CHECK(ask(server.address().port, "GET / HTTP/1.1\r\n\r\n").status == 200);
  CHECK(slow[0].is_closed_within(10s));
  slow[3].send("GET / HTTP/1.1\r\n\r\n");
  CHECK(Answer(slow[3].read_all()).status == 200);
}

TEST_CASE("who is too slow is left") {
  const HttpServer server(listen_at(kAnyPort), echo, {.head = 100ms});
  const RawClient client(server.address().port);
  client.send("GET / HTTP/1.1\r\n");
  CHECK(client.is_closed_within(10s));
}

TEST_CASE("who takes an answer too slowly is left, though some of it is taken all the time") {
  const std::string large(std::size_t{32} << 20, 'x');
  const HttpServer server(
      listen_at(kAnyPort),
      [&](std::string_view, const ClientGone&) { return "HTTP/1.1 200 OK\r\n\r\n" + large; },
      {.write = 200ms, .write_rate = 10 * large.size()});
  const RawClient client(server.address().port);
  client.send("GET / HTTP/1.1\r\n\r\n");
  std::vector<char> block(65536);
  std::size_t taken = 0;
  while (true) {
    const ssize_t bytes = ::recv(client.socket(), block.data(), block.size(), 0);
    if (bytes <= 0) break;
    taken += static_cast<std::size_t>(bytes);
    std::this_thread::sleep_for(5ms);
  }
  CHECK(taken > 0);
  CHECK(taken < large.size());
}

TEST_CASE("a client that is gone before its answer is there changes nothing") {
  const HttpServer server(listen_at(kAnyPort), [](std::string_view head, const ClientGone&) {
    std::this_thread::sleep_for(5ms);
    return echo(head);
  });
  for (int i = 0; i < 100; ++i) {
    RawClient client(server.address().port);
    client.send("GET / HTTP/1.1\r\n\r\n");
    client.reset();
  }
  CHECK(ask(server.address().port, "GET / HTTP/1.1\r\n\r\n").status == 200);
}

TEST_CASE("a client that has ended its half of the connection gets its answer") {
  const HttpServer server(listen_at(kAnyPort), echo);
  const RawClient client(server.address().port);
  client.send("GET / HTTP/1.1\r\n\r\nand more");
  client.end_sending();
  CHECK(Answer(client.read_all()).body == "GET / HTTP/1.1");
}

TEST_CASE("an answer that takes long is told when its client is gone") {
  std::atomic<bool> asked{false};
  std::atomic<bool> told{false};
  const HttpServer server(listen_at(kAnyPort),
                          [&](std::string_view head, const ClientGone& is_gone) {
                            const auto until = std::chrono::steady_clock::now() + 20s;
                            asked = true;
                            while (!is_gone() && std::chrono::steady_clock::now() < until)
                              std::this_thread::sleep_for(1ms);
                            told = is_gone();
                            return echo(head);
                          });
  const bool as_a_whole = GENERATE(true, false);
  RawClient client(server.address().port);
  client.send("GET / HTTP/1.1\r\n\r\n");
  while (!asked)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  CHECK_FALSE(told);
  if (as_a_whole) {
    client.reset();
    while (!told)
      std::this_thread::sleep_for(1ms);
  } else {
    client.end_sending();
    CHECK(Answer(client.read_all()).status == 200);
    CHECK(told);
  }
}

TEST_CASE("to stop waits for what is being answered, and a thread that answers may do it") {
  std::unique_ptr<HttpServer> server;
  std::atomic<bool> answered{false};
  std::mutex made;
  const std::unique_lock lock(made);
  server = std::make_unique<HttpServer>(listen_at(kAnyPort),
                                        [&](std::string_view head, const ClientGone&) {
                                          if (head.starts_with("GET /stop")) server->stop();
                                          std::this_thread::sleep_for(50ms);
                                          answered = true;
                                          return echo(head);
                                        });
  const RawClient client(server->address().port);
  const bool by_itself = GENERATE(false, true);
  client.send(by_itself ? "GET /stop HTTP/1.1\r\n\r\n" : "GET / HTTP/1.1\r\n\r\n");
  if (by_itself) {
    CHECK(client.is_closed_within(10s));
    while (!answered)
      std::this_thread::sleep_for(1ms);
  } else {
    std::this_thread::sleep_for(20ms);
    server->stop();
    server->stop();
  }
  std::this_thread::sleep_for(20ms);  // for a detached thread to leave `answered` alone
  SUCCEED();
}

}  // namespace http_server_test
}  // namespace batchrpc::status
