// What every transport must do, run over each of them.
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "batchrpc/base/error.hpp"
#include "fabrics.hpp"

namespace batchrpc::test {
namespace conformance_test {

/// A context and the thread that the embedder runs it on.
struct Embedder {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread{[this] { context.run(); }};
  ~Embedder() {
    context.stop();
    thread.join();
  }
};

Fabric embedded_fabric() {
  Fabric fabric;
  auto embedder = std::make_shared<Embedder>();
  auto loop = SocketLoop::embed(embedder->context);
  fabric.server = fabric.client = std::make_shared<TcpTransport>(loop);
  fabric.server_loop = fabric.client_loop = loop;
  fabric.address = [] { return free_address("tcp"); };
  fabric.runner = embedder;
  return fabric;
}

Fabric virtual_fabric(const LinkOptions& link) {
  auto network = InprocNetwork::make(1);
  network->set_link(link);
  auto loop = std::make_shared<VirtualLoop>();
  return inproc_fabric(network, loop, loop);
}

struct Case {
  const char* name;
  std::function<Fabric()> make;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"tcp", [] { return socket_fabric("tcp"); }},
      {"tcp, polling",
       [] { return socket_fabric("tcp", {.busy_poll = std::chrono::microseconds(50)}); }},
      {"tcp, embedded", embedded_fabric},
      {"unix path", [] { return socket_fabric("unix"); }},
      {"unix abstract", [] { return socket_fabric("unix-abstract"); }},
      {"inproc",
       [] {
         return inproc_fabric(InprocNetwork::make(), SocketLoop::start(), SocketLoop::start());
       }},
      {"inproc in virtual time", [] { return virtual_fabric({}); }},
      {"inproc in virtual time, slow",
       [] {
         return virtual_fabric(
             {.latency = std::chrono::milliseconds(5), .jitter = std::chrono::milliseconds(3)});
       }},
  };
  return all;
}

/// Runs `test` over each transport.
void over_each(const std::function<void(Fabric&)>& test) {
  for (const Case& each : cases()) {
    INFO(each.name);
    Fabric fabric = each.make();
    test(fabric);
  }
}

bool is_gone(const IoResult& result) {
  return result.error == std::errc::broken_pipe || result.error == std::errc::connection_reset ||
         result.error == std::errc::not_connected;
}

TEST_CASE("bytes arrive in order, in whatever pieces they are written and read") {
  over_each([](Fabric& fabric) {
    std::mt19937 random(7);
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    for (int round = 0; round < 30; ++round) {
      const std::size_t size = 1 + random() % 5000;
      const auto sent = pattern(size, random());
      const bool from_client = random() % 2 == 0;
      Stream& from = from_client ? *pair.client : *pair.server;
      Stream& to = from_client ? *pair.server : *pair.client;
      CHECK(ends.transfer(from, to, sent, 1 + random() % 2000, 1 + random() % 2000) == sent);
    }
  });
}

TEST_CASE("bytes written and read one at a time arrive in order") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const auto sent = pattern(400, 1);
    CHECK(ends.transfer(*pair.client, *pair.server, sent, 1, 1) == sent);
    for (std::size_t i = 0; i < 40; ++i) {
      const auto byte = std::span(sent).subspan(i, 1);
      ends.write_all(*pair.server, byte);
      CHECK(ends.read(*pair.client, 1)[0] == byte[0]);
    }
  });
}

TEST_CASE("one try gathers from many buffers and scatters into many") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const auto sent = pattern(100 * 10, 3);
    std::vector<std::span<const std::byte>> out;
    for (std::size_t i = 0; i < 100; ++i) {
      out.push_back(std::span(sent).subspan(10 * i, i % 7 == 0 ? 0 : 10));
    }
    const IoResult written = pair.client->try_write(out);
    CHECK(written.bytes == 10 * (64 - 10));  // 64 buffers are looked at, ten of which are empty
    std::vector<std::byte> expected;
    for (std::size_t i = 0; i < 64; ++i)
      expected.insert(expected.end(), out[i].begin(), out[i].end());

    std::vector<std::byte> got(written.bytes);
    std::size_t count = 0;
    while (count < got.size()) {
      const auto rest = std::span(got).subspan(count);
      const std::vector<std::span<std::byte>> in{
          rest.first(std::min<std::size_t>(3, rest.size())),
          {},
          rest.subspan(std::min<std::size_t>(3, rest.size()))};
      const IoResult result = pair.server->try_read(in);
      REQUIRE(!result.end);
      REQUIRE(!result.error);
      if (result.would_block()) ends.wait_readable(*pair.server);
      count += result.bytes;
    }
    CHECK(got == expected);
  });
}

TEST_CASE("a message of 64 MiB arrives whole") {
  constexpr std::size_t kSize = 64 * 1024 * 1024;
  const auto sent = pattern(kSize, 5);
  over_each([&](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const bool whole = Ends(fabric).transfer(*pair.client, *pair.server, sent) == sent;
    CHECK(whole);
  });
}

TEST_CASE("either side may close after any byte, and the other reads what came before") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    for (std::size_t size = 0; size < 24; ++size) {
      for (const bool client_closes : {true, false}) {
        for (const bool by_destruction : {true, false}) {
          Pair pair = accepting.connect();
          auto& closing = client_closes ? pair.client : pair.server;
          auto& other = client_closes ? pair.server : pair.client;
          const auto sent = pattern(size, size);
          ends.write_all(*closing, sent, 1 + size / 3);
          if (by_destruction) {
            closing.reset();
          } else {
            closing->shutdown();
            closing->shutdown();
          }
          CHECK(ends.read(*other, 1000) == sent);
          CHECK(ends.last.end);
          // Writes fail sooner or later, and raise no signal.
          const std::byte byte{};
          const std::span<const std::byte> one(&byte, 1);
          IoResult result;
          for (int i = 0; i < 1000 && !result.error; ++i)
            result = other->try_write({&one, 1});
          if (result.error) CHECK(is_gone(result));
        }
      }
    }
  });
}

TEST_CASE("after a shutdown this side's tries give the end or an error") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    pair.client->shutdown();
    std::array<std::byte, 4> room{};
    const std::span<std::byte> in(room);
    const IoResult read = pair.client->try_read({&in, 1});
    CHECK((read.end || read.error));
    const std::span<const std::byte> out(room);
    CHECK(is_gone(pair.client->try_write({&out, 1})));
  });
}

TEST_CASE("a shutdown calls this side's waiting handlers") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    Countdown called(1);
    pair.client->wait_readable([&] { called.arrive(); });
    pair.client->shutdown();
    called.wait(fabric.waiting());
  });
}

TEST_CASE("a reader that stops makes the writer wait, and memory stays bounded") {
  static constexpr std::size_t kBound = 32 * 1024 * 1024;
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    const auto block = pattern(64 * 1024, 1);
    std::size_t written = 0;
    IoResult result;
    // A socket takes more once the system has moved what it has.
    for (int full = 0; full < 3 && written < kBound;) {
      const std::span<const std::byte> out(block);
      result = pair.client->try_write({&out, 1});
      REQUIRE(!result.error);
      written += result.bytes;
      full = result.would_block() ? full + 1 : 0;
    }
    REQUIRE(written < kBound);

    Signal writable;
    pair.client->wait_writable([&] { writable.set(); });
    std::size_t read = 0;
    std::vector<std::byte> room(256 * 1024);
    while (read < written) {
      const std::span<std::byte> in(room);
      const IoResult got = pair.server->try_read({&in, 1});
      REQUIRE(!got.error);
      REQUIRE(!got.end);
      read += got.bytes;
      if (got.would_block()) ends.wait_readable(*pair.server);
    }
    CHECK(read == written);
    writable.wait(fabric.waiting());
  });
}

TEST_CASE("a connect is refused where nobody listens") {
  over_each([](Fabric& fabric) {
    Address address = fabric.address();
    {
      const Accepting accepting(fabric, address);
      address = accepting.address();  // of a port that was free a moment ago
    }
    const auto [stream, error] = connect(fabric, address);
    CHECK(stream == nullptr);
    CHECK(error == std::errc::connection_refused);
  });
}

TEST_CASE("an address that is taken says so and works on") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    try {
      const Accepting second(fabric, accepting.address());
      FAIL("the second listener was let in");
    } catch (const JoinFailed& error) {
      CHECK_THAT(error.what(), Catch::Contains(accepting.address().to_string()));
      CHECK_THAT(error.what(), Catch::Contains("taken"));
    }
    CHECK(accepting.connect().server != nullptr);
  });
}

TEST_CASE("an address is free again after its listener") {
  over_each([](Fabric& fabric) {
    Address address = fabric.address();
    for (int i = 0; i < 3; ++i) {
      Accepting accepting(fabric, address);
      address = accepting.address();
      CHECK(accepting.connect().server != nullptr);
    }
  });
}

TEST_CASE("a scheme that a transport does not know is refused") {
  over_each([](Fabric& fabric) {
    const bool inproc = fabric.address().scheme() == "inproc";
    const Address wrong = Address::parse(inproc ? "tcp://127.0.0.1:1" : "inproc://somebody");
    CHECK_THROWS_AS(fabric.server->listen(wrong, {}), InvalidArgument);
    CHECK_THROWS_AS(fabric.client->connect(wrong, fabric.soon(), {}), InvalidArgument);
  });
}

TEST_CASE("200 connections echo side by side") {
  over_each([](Fabric& fabric) {
    constexpr std::size_t kConnections = 200;
    Ends ends(fabric);
    Accepting accepting(fabric);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < kConnections; ++i)
      pairs.push_back(accepting.connect());
    for (std::size_t i = 0; i < kConnections; ++i) {
      ends.write_all(*pairs[i].client, pattern(300 + i, i));
    }
    for (std::size_t i = kConnections; i-- > 0;) {
      ends.write_all(*pairs[i].server, ends.read(*pairs[i].server, 300 + i));
    }
    for (std::size_t i = 0; i < kConnections; ++i) {
      CHECK(ends.read(*pairs[i].client, 300 + i) == pattern(300 + i, i));
    }
  });
}

TEST_CASE("handlers run on their side's loop") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    Countdown called(2);
    std::atomic<bool> on_client{false};
    std::atomic<bool> on_server{false};
    pair.client->wait_writable([&] {
      on_client = fabric.client_loop->is_driving();
      called.arrive();
    });
    pair.server->wait_writable([&] {
      on_server = fabric.server_loop->is_driving();
      called.arrive();
    });
    called.wait(fabric.waiting());
    CHECK(on_client);
    CHECK(on_server);
  });
}

TEST_CASE("a stream's end destroys its waiting handlers without calling them") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    Pair pair = accepting.connect();
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> watch = token;
    std::atomic<bool> called{false};
    pair.client->wait_readable([&called, token = std::move(token)] { called = true; });
    pair.client.reset();
    CHECK(watch.expired());
    ends.read(*pair.server, 1);
    CHECK(ends.last.end);
    CHECK_FALSE(called);
  });
}

TEST_CASE("a stream may be destroyed in its own handler") {
  over_each([](Fabric& fabric) {
    Ends ends(fabric);
    Accepting accepting(fabric);
    for (int i = 0; i < 20; ++i) {
      Pair pair = accepting.connect();
      Countdown called(1);
      pair.client->wait_readable([&] {
        pair.client.reset();
        called.arrive();
      });
      ends.write_all(*pair.server, pattern(10, 1));
      called.wait(fabric.waiting());
    }
  });
}

TEST_CASE("a listener may be destroyed in its own handler") {
  over_each([](Fabric& fabric) {
    Countdown called(1);
    std::unique_ptr<Listener> listener;
    listener = fabric.server->listen(fabric.address(), [&](std::unique_ptr<Stream>) {
      listener.reset();
      called.arrive();
    });
    const auto [stream, error] = connect(fabric, listener->address());
    CHECK(!error);
    called.wait(fabric.waiting());
  });
}

TEST_CASE("a transport's end destroys the handlers of connects under way") {
  over_each([](Fabric& fabric) {
    const Accepting accepting(fabric);
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> watch = token;
    fabric.server.reset();  // it may be the same
    fabric.client->connect(accepting.address(), fabric.soon(),
                           [token = std::move(token)](std::unique_ptr<Stream>, std::error_code) {});
    fabric.client.reset();
    Countdown passed(1);
    fabric.client_loop->post([&] { passed.arrive(); });
    passed.wait(fabric.waiting());
    CHECK(watch.expired());
  });
}

TEST_CASE("streams say whom they reach") {
  over_each([](Fabric& fabric) {
    Accepting accepting(fabric);
    const Pair pair = accepting.connect();
    CHECK(pair.client->description() == accepting.address().to_string());
    CHECK_FALSE(pair.server->description().empty());
    CHECK(pair.client->local_address().scheme() != "unix");
  });
}

}  // namespace conformance_test
}  // namespace batchrpc::test
