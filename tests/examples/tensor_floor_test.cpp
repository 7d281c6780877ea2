#include <ATen/ATen.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "common/sockets.hpp"
#include "tensor_benchmark/child.hpp"
#include "tensor_benchmark/copies.hpp"
#include "tensor_benchmark/floor.hpp"
#include "tensor_benchmark/floor_stream.hpp"
#include "tensor_benchmark/rounds.hpp"
#include "tensor_benchmark/tensors.hpp"

namespace tensor_benchmark {
namespace tensor_floor_test {

/// A floor's server on a thread.
class FloorHere {
 public:
  explicit FloorHere(Transport transport)
      : kind_(socket_kind(transport)),
        listener_(kind_),
        server_([this] { serve_floor(listener_); }) {}
  ~FloorHere() {
    listener_.close();
    server_.join();
  }

  [[nodiscard]] batchrpc_benchmarks::Socket connect() const {
    return batchrpc_benchmarks::connect_to(kind_, listener_.address());
  }

 private:
  const batchrpc_benchmarks::SocketKind kind_;
  const batchrpc_benchmarks::Listener listener_;
  std::thread server_;
};

TEST_CASE("the floor moves tensors of any size with any window, and times every call") {
  for (const Transport transport : {Transport::tcp, Transport::unix_socket}) {
    const FloorHere floor(transport);
    for (const Mode mode : {Mode::echo, Mode::push}) {
      for (const int window : {1, 3, 8}) {
        for (const std::uint64_t bytes : {1000, 70'000, 3 << 20}) {
          for (const bool contiguous : {true, false}) {
            CAPTURE(to_string(transport), to_string(mode), window, bytes, contiguous);
            const Case which{transport, mode, bytes, window, contiguous, false};
            const auto client =
                make_floor_client(floor.connect(), which, make_tensor(bytes, contiguous), [] {});
            for (int run = 0; run < 2; ++run) {
              const Outcome outcome = client->run(0.001);
              CHECK(outcome.us.size() >= static_cast<std::size_t>(window));
              CHECK(std::all_of(outcome.us.begin(), outcome.us.end(),
                                [](double us) { return us > 0; }));
              CHECK(outcome.seconds > 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the floor's server gives the bytes back that it was sent") {
  const FloorHere floor(Transport::unix_socket);
  const FloorStream stream(floor.connect(), {});
  constexpr std::size_t kBytes = 5000;
  const FloorHello hello{.bytes = kBytes, .window = 2, .echo = 1};
  stream.send(std::as_bytes(std::span(&hello, 1)));
  MessageRing replies(kBytes, 2);
  for (std::size_t number = 0; number < 5; ++number) {
    std::vector<std::byte> message(MessageRing::message_bytes(kBytes), std::byte(number + 1));
    stream.send(message);
    while (replies.receive(stream, true) == 0) {
    }
    CHECK(std::ranges::equal(replies.message(number), message));
  }
}

TEST_CASE("what ends a floor's client ends its call at once") {
  const batchrpc_benchmarks::Listener deaf(batchrpc_benchmarks::SocketKind::unix_socket);
  struct Ended {};
  for (const int window : {1, 4}) {
    const Case which{Transport::unix_socket, Mode::echo, 1 << 20, window, true, false};
    const auto client =
        make_floor_client(batchrpc_benchmarks::connect_to(
                              batchrpc_benchmarks::SocketKind::unix_socket, deaf.address()),
                          which, make_tensor(which.bytes, true), [] { throw Ended(); });
    CHECK_THROWS_AS(client->run(60), Ended);
  }
}

TEST_CASE("a floor copies views once, and dense tensors not at all") {
  if (!CopyCounts::possible()) {
    WARN("left out: batchrpc as a static library");
    return;
  }
  CopyCounts counts;
  const FloorHere floor(Transport::unix_socket);
  for (const bool contiguous : {true, false}) {
    for (const int window : {1, 8}) {
      const Case which{Transport::unix_socket, Mode::echo, 4096, window, contiguous, false};
      const auto client =
          make_floor_client(floor.connect(), which, make_tensor(4096, contiguous), [] {});
      const auto copies = count_copies(*client, which, counts);
      REQUIRE(copies);
      CHECK(copies->sum() == (contiguous ? 0 : 1));
    }
  }
}

}  // namespace tensor_floor_test
}  // namespace tensor_benchmark
