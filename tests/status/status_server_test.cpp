#include "batchrpc/status/status_server.hpp"

#include <httplib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "batchrpc/status.hpp"
#include "http_client.hpp"

namespace batchrpc {

int twice(int number) { return 2 * number; }

namespace status_server_test {

using test::Answer;
using test::get;
using test::port_of;
using namespace std::chrono_literals;
using Json = nlohmann::json;

/// A node with a page, and one that calls it.
struct Pair {
  Node server{{.name = "server", .status = status_page(), .logging = {.level = LogLevel::error}}};
  Node client{{.name = "client", .rank = -1, .join = server.address()}};
  std::string page = server.status_address();

  Pair() { server.expose<&twice>(); }
  void call(int times) const {
    for (int i = 0; i < times; ++i)
      CHECK(client.call<&twice>("server", i).get() == 2 * i);
  }
};

Json status_of(const std::string& page) {
  std::this_thread::sleep_for(150ms);  // beyond what is kept
  const Answer answer = get(page, "/status.json");
  CHECK(answer.status == 200);
  CHECK(answer.has("Content-Type: application/json"));
  return Json::parse(answer.body);
}

Json function_of(const Json& status, const std::string& name) {
  for (const Json& function : status["metrics"]["functions"]) {
    if (function["name"] == name) return function;
  }
  return {};
}

TEST_CASE("a node has no status page unless it is told to") {
  const Node node({.name = "alone"});
  CHECK(node.status_address().empty());
}

TEST_CASE("NodeOptions::status serves a page, on loopback, until the node ends") {
  std::string page;
  {
    const Pair pair;
    page = pair.page;
    CHECK(page.starts_with("http://127.0.0.1:"));
    const Answer answer = get(page, "/");
    CHECK(answer.status == 200);
    CHECK(answer.has("Content-Type: text/html; charset=utf-8"));
    CHECK_THAT(answer.head, Catch::Contains("Content-Security-Policy: default-src 'none'; "));
    CHECK_THAT(answer.body, Catch::StartsWith("<!doctype html>"));
  }
  CHECK_THROWS(get(page, "/"));
}

TEST_CASE("two nodes that are made with the same options each have a page") {
  const NodeOptions options{.status = status_page()};
  const Node one(options);
  const Node other(options);
  CHECK(get(one.status_address(), "/").status == 200);
  CHECK(get(other.status_address(), "/").status == 200);
  CHECK(one.status_address() != other.status_address());
}

TEST_CASE("shutdown() ends the page, and a moved node keeps it") {
  Pair pair;
  Node moved = std::move(pair.server);
  CHECK(moved.status_address() == pair.page);
  CHECK(get(pair.page, "/status.json").status == 200);
  (void)moved.shutdown(1s);
  CHECK(moved.status_address().empty());
  CHECK_THROWS(get(pair.page, "/"));
}

TEST_CASE("the page is there while a node waits for the others of its world") {
  const std::string page = Pair().page;  // whose port is free again
  auto starting = Node::start({.name = "first",
                               .world_size = 2,
                               .join = "unix-abstract:status-" + std::to_string(::getpid()),
                               .status = status_page({.address = page.substr(7)})});
  CHECK_FALSE(starting.ready());
  CHECK(status_of(page)["metrics"]["name"] == "first");
  const Node second({.name = "second",
                     .rank = 1,
                     .world_size = 2,
                     .join = "unix-abstract:status-" + std::to_string(::getpid())});
  const Node first = std::move(starting).get();
  CHECK(first.status_address() == page);
}

TEST_CASE("a status page whose port is taken, or whose address is none, lets no node start") {
  const Pair pair;
  const std::string taken = "127.0.0.1:" + std::to_string(port_of(pair.page));
  CHECK_THROWS_AS(Node({.name = "b", .status = status_page({.address = taken})}), JoinFailed);
  CHECK_THROWS_WITH(Node({.name = "b", .status = status_page({.address = taken})}),
                    Catch::Contains(taken));
  CHECK_THROWS_AS(status_page({.address = "8080"}), InvalidArgument);
  CHECK_THROWS_AS(status_page({.address = ""}), InvalidArgument);
  CHECK_THROWS_AS(StatusServer(pair.client, {.address = taken}), JoinFailed);
}

TEST_CASE("status.json tells of the node, its peers and functions, and moves with calls") {
  const Pair pair;
  pair.call(10);
  const Json before = status_of(pair.page);
  CHECK(before["metrics"]["name"] == "server");
  CHECK(before["address"] == pair.server.address());
  CHECK(before["peers"][0]["name"] == "client");
  CHECK(before["metrics"]["peers"][0]["state"] == "connected");
  const Json twice_before = function_of(before, "batchrpc::twice");
  CHECK(twice_before["answered"]["calls"] == 10);
  CHECK(twice_before["answered"]["latency_ns"]["p99"] > 0);
  pair.call(5);
  CHECK(function_of(status_of(pair.page), "batchrpc::twice")["answered"]["calls"] == 15);
}

TEST_CASE("status.json is made anew at most every 100 ms") {
  const Pair pair;
  const auto uptime = [&] {
    return Json::parse(get(pair.page, "/status.json").body)["metrics"]["uptime_ns"]
        .get<std::int64_t>();
  };
  int different = 0;
  const auto began = std::chrono::steady_clock::now();
  std::int64_t last = 0;
  for (int i = 0; i < 50; ++i)
    different += std::exchange(last, uptime()) != last ? 1 : 0;
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(different <= 1 + took / 100ms);
}

TEST_CASE("a client of HTTP gets pages, text for Prometheus, and 404 for the rest") {
  const Pair pair;
  pair.call(1);
  httplib::Client client("127.0.0.1", port_of(pair.page));
  const auto page = client.Get("/");
  REQUIRE(page);
  CHECK(page->status == 200);
  const auto metrics = client.Get("/metrics");
  REQUIRE(metrics);
  CHECK(metrics->status == 200);
  CHECK(metrics->get_header_value("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  CHECK_THAT(metrics->body, Catch::Contains("batchrpc_handled_calls_total"));
  for (const char* path : {"/index.html", "/../etc/passwd", "/status", "//", "/metrics/"}) {
    INFO(path);
    const auto missing = client.Get(path);
    REQUIRE(missing);
    CHECK(missing->status == 404);
  }
  const auto head = client.Head("/status.json");
  REQUIRE(head);
  CHECK(head->status == 200);
  CHECK(head->body.empty());
  const auto post = client.Post("/status.json", "{}", "application/json");
  REQUIRE(post);
  CHECK(post->status == 405);
}

TEST_CASE("on loopback, names that are not loopback's are refused, and so are other sites") {
  const Pair pair;
  CHECK(get(pair.page, "/status.json", "Host: localhost:1\r\n").status == 200);
  CHECK(get(pair.page, "/status.json", "Host: evil.example\r\n").status == 403);
  CHECK(get(pair.page, "/status.json", "").status == 403);
  const std::string host = "Host: localhost\r\nSec-Fetch-Site: ";
  CHECK(get(pair.page, "/trace?seconds=1", host + "cross-site\r\n").status == 403);
  CHECK(get(pair.page, "/status.json", host + "same-site\r\n").status == 403);
  CHECK(get(pair.page, "/status.json", host + "same-origin\r\n").status == 200);
  CHECK(get(pair.page, "/status.json", host + "none\r\n").status == 200);
  CHECK(get(pair.page, "/", host + "cross-site\r\n").status == 200);  // a link to it
  const std::string origin = "Host: localhost:1\r\nOrigin: ";  // of browsers that say no more
  CHECK(get(pair.page, "/status.json", origin + "http://localhost:1\r\n").status == 200);
  for (const char* const other : {"http://evil.example", "http://localhost:2", "null"})
    CHECK(get(pair.page, "/status.json", origin + other + "\r\n").status == 403);
  CHECK(get(pair.page, "/status.json", "Host: localhost\r\nHost: evil.example\r\n").status == 400);
}

TEST_CASE("a trace is recorded, has the calls of its seconds, and is one at a time") {
  const Pair pair;
  const StatusServer page(pair.client);
  std::atomic<bool> over{false};
  std::thread calling([&] {
    while (!over) {
      pair.call(1);
      std::this_thread::sleep_for(2ms);
    }
  });
  std::optional<Answer> second;
  std::thread asking([&] {
    std::this_thread::sleep_for(300ms);
    second.emplace(get(page.address(), "/trace?seconds=1"));
  });
  const Answer answer = get(page.address(), "/trace?seconds=1");
  over = true;
  calling.join();
  asking.join();
  CHECK(answer.status == 200);
  CHECK(second->status == 409);
  CHECK_THAT(answer.head,
             Catch::Contains("Content-Disposition: attachment; filename=\"batchrpc-client-20"));
  const Json trace = Json::parse(answer.body);
  int calls = 0;
  for (const Json& event : trace["traceEvents"])
    calls +=
        event["ph"] == "X" && event["name"].get<std::string>().find("twice") != std::string::npos;
  CHECK(calls > 0);
  CHECK(get(page.address(), "/trace?seconds=1").status == 200);  // the next one
}

TEST_CASE("a trace may leave out operators, and record one call in so many") {
  const Pair pair;
  const StatusServer page(pair.client);
  std::atomic<bool> over{false};
  std::thread calling([&] {
    while (!over) {
      pair.call(1);
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto calls_in = [&](const std::string& how) {
    const Json trace = Json::parse(get(page.address(), "/trace?seconds=1" + how).body);
    int calls = 0;
    for (const Json& event : trace["traceEvents"])
      calls +=
          event["ph"] == "X" && event["name"].get<std::string>().find("twice") != std::string::npos;
    return calls;
  };
  const int all = calls_in("&operators=0");
  const int some = calls_in("&operators=1&sample=100000");
  over = true;
  calling.join();
  CHECK(all > 0);
  CHECK(some < all);
  for (const char* const wrong :
       {"&operators=2", "&operators=no", "&sample=0", "&sample=x", "&sample=9999999999"})
    CHECK(get(page.address(), std::string("/trace?seconds=1") + wrong).status == 400);
}

TEST_CASE("traces last from 1 to 60 seconds") {
  const Pair pair;
  const std::string wrong = GENERATE("", "?seconds=", "?seconds=0", "?seconds=61", "?seconds=-1",
                                     "?seconds=1.5", "?seconds=1e9", "?seconds=1%00", "?second=1");
  CHECK(get(pair.page, "/trace" + wrong).status == 400);
}

TEST_CASE("a node that ends while a trace is recorded does not wait for it") {
  std::optional<Pair> pair(std::in_place);
  const test::RawClient client(port_of(pair->page));
  client.send("GET /trace?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while (!status_of(pair->page)["recording"].get<bool>()) {
  }
  const auto began = std::chrono::steady_clock::now();
  pair.reset();
  CHECK(std::chrono::steady_clock::now() - began < 20s);
  CHECK_FALSE(Answer(client.read_all()).status == 200);
}

TEST_CASE("a trace ends when who wants it is gone, and others may have theirs") {
  const Pair pair;
  {
    const test::RawClient client(port_of(pair.page));
    client.send("GET /trace?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (!status_of(pair.page)["recording"].get<bool>()) {
    }
  }
  const auto until = std::chrono::steady_clock::now() + 20s;
  int status = 409;
  while (status == 409 && std::chrono::steady_clock::now() < until)
    status = get(pair.page, "/trace?seconds=1").status;
  CHECK(status == 200);
}

TEST_CASE("a node ends while a status server of the program's own records a trace of it") {
  std::optional<Pair> pair(std::in_place);
  const StatusServer page(pair->client);
  const test::RawClient client(port_of(page.address()));
  client.send("GET /trace?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while (!status_of(page.address())["recording"].get<bool>()) {
  }
  const std::weak_ptr<NodeCore> node = detail::NodeAccess::core(pair->client);
  pair.reset();
  CHECK(node.expired());
  const Answer answer(client.read_all());
  CHECK(answer.status == 503);
  CHECK(answer.body == "the node has ended\n");
}

TEST_CASE("a status server that outlives its node says so") {
  std::optional<Node> node(Node({.name = "short"}));
  StatusServer page(*node);
  CHECK(get(page.address(), "/status.json").status == 200);
  std::thread asking([&] {
    for (int i = 0; i < 100; ++i) {
      const int status = get(page.address(), "/status.json").status;
      CHECK((status == 200 || status == 503));
    }
  });
  std::this_thread::sleep_for(5ms);
  node.reset();
  asking.join();
  CHECK(get(page.address(), "/status.json").status == 503);
  CHECK(get(page.address(), "/metrics").status == 503);
  CHECK(get(page.address(), "/trace?seconds=1").status == 503);
  CHECK(get(page.address(), "/").status == 200);
  page.stop();
  page.stop();
  CHECK_THROWS(get(page.address(), "/"));
}

TEST_CASE("a child of fork() serves nothing, ends nothing, and keeps no port") {
  std::string page;
  pid_t child = -1;
  {
    std::optional<Pair> pair(std::in_place);
    std::optional<StatusServer> server(pair->client);
    page = server->address();
    child = ::fork();
    if (child == 0) {
      server.reset();
      ::pause();
      ::_exit(0);
    }
    std::this_thread::sleep_for(50ms);
    CHECK(get(page, "/status.json").status == 200);
  }
  CHECK_THROWS(get(page, "/"));
  const Node node({.name = "after"});
  CHECK(StatusServer(node, {.address = "127.0.0.1:" + std::to_string(port_of(page))}).address() ==
        page);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace status_server_test
}  // namespace batchrpc
