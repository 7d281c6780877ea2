#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <random>

#include "batchrpc/base/address.hpp"
#include "batchrpc/batchrpc.hpp"
#include "batchrpc/transport/tcp_address.hpp"
#include "largest_allocation.hpp"
#include "long_tests.hpp"
#include "node/raw_frames.hpp"
#include "node/real_nodes.hpp"
#include "wire/frame.hpp"

// Whatever bytes come to a listening port, the node lives on. What it makes of each kind of them,
// and of more of them: session_test.cpp; of calls that are well-formed: hostile_calls_test.cpp.

namespace batchrpc {
namespace hostile_bytes_test {

using test::call_frame;
using test::define;
using wire::FrameKind;
using Frames = std::vector<std::vector<Word>>;

/// A bare connection to a node's TCP port.
class BareSocket {
 public:
  explicit BareSocket(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~BareSocket() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};  // thousands of these use up the ports
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(socket_);
  }
  BareSocket(const BareSocket&) = delete;
  BareSocket& operator=(const BareSocket&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }

  /// False when the node has closed the connection.
  bool send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Takes what has come, so that the node's answers find room.
  void drain() const {
    std::array<std::byte, 65536> buffer{};
    while (::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) {
    }
  }

  /// What the node has made of what was sent before: read on, closed the connection, or waits for
  /// the rest.
  enum class Fate { parsed, refused, waiting };
  [[nodiscard]] Fate fate() const {
    const auto ping = wire::plain_frame({.kind = FrameKind::ping});
    if (!send(std::as_bytes(std::span(ping)))) return Fate::refused;
    const timeval patience{.tv_sec = 0, .tv_usec = 2'000};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::vector<Word> words;
    for (std::size_t bytes = 0;;) {
      words.resize(bytes / sizeof(Word) + 4096);
      auto* const end = reinterpret_cast<std::byte*>(words.data()) + bytes;
      const ssize_t got = ::recv(socket_, end, 4096 * sizeof(Word) - 8, 0);
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Fate::waiting;
      if (got <= 0) return Fate::refused;
      bytes += static_cast<std::size_t>(got);
      if (has_pong(std::span(words).first(bytes / sizeof(Word)))) return Fate::parsed;
    }
  }

 private:
  static bool has_pong(std::span<const Word> words) {
    while (!words.empty()) {
      const auto size = wire::frame_words(words.front());
      if (!size || *size > words.size()) return false;
      if (wire::parse_frame(words.first(*size)).header.kind == FrameKind::pong) return true;
      words = words.subspan(*size);
    }
    return false;
  }

  int socket_;
  bool connected_ = false;
};

/// Correct frames of every kind.
Frames correct_frames() {
  auto chunk = wire::plain_frame({.kind = FrameKind::chunk, .id = 10, .value = 20'000});
  chunk.resize(chunk.size() + 20'000 / sizeof(Word));
  return {define(0, "twice", signature<int, int>()),
          define(1, "size", signature<std::size_t, Bytes>()),
          define(2, "batchrpc.rref.ready",
                 signature<void, std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>()),
          call_frame({.number = 0, .id = 8}, 21),
          call_frame({.number = 1, .id = 9}, Bytes::allocate(1000)),
          call_frame({.number = 1, .id = 10}, Bytes::allocate(20'000)),
          chunk,
          wire::plain_frame({.kind = FrameKind::ping}),
          wire::plain_frame({.kind = FrameKind::pong}),
          wire::error_frame(3, std::make_exception_ptr(std::runtime_error("what")))};
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t any(std::size_t count) { return random_() % count; }

  /// Noise, or a frame with up to three changes, or a part of one.
  std::vector<std::byte> bytes(const Frames& frames) {
    std::vector<Word> words;
    if (any(8) == 0) {
      words.resize(any(40));
      for (Word& word : words)
        word = random_();
      // As long as a frame, at least.
      if (!words.empty() && any(2) == 0) words[0] = Word{words.size() - 1} << 32;
    } else {
      words = frames[any(frames.size())];
      // A function is not defined twice: most of these end the connection.
      if (wire::parse_frame(words).header.kind == FrameKind::define)
        words = frames[any(frames.size())];
      for (std::size_t changes = any(4); changes > 0; --changes) {
        Word& word = words[any(std::min<std::size_t>(words.size(), 24))];
        word = any(4) == 0 ? random_() : word ^ (Word{1} << any(64));
      }
    }
    const auto all = std::as_bytes(std::span(words));
    return {all.begin(), all.end() - static_cast<std::ptrdiff_t>(any(32) == 0 ? any(8) : 0) *
                                         (all.size() >= 8 ? 1 : 0)};
  }

 private:
  std::mt19937_64 random_;
};

TEST_CASE("random and mutated frames on a listening port do no harm, each of them parsed",
          "[threads]") {
  NodeOptions options = test::real_root("root", 2);
  options.join = "tcp://127.0.0.1:0";
  options.security.insecure = true;  // so that the frames are parsed
  options.logging.level = LogLevel::off;
  options.limits.max_frame_bytes = 64 * 1024;
  options.limits.max_payload_bytes = 64 * 1024;
  const Node node(options);
  node.expose("twice", [](int x) { return static_cast<int>(2U * static_cast<unsigned>(x)); });
  node.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  const std::uint16_t port = TcpAddress::parse(node.address()).port;
  const auto next_call_works = [&node] {
    NodeOptions joining = test::real_joining(node, "peer", 1);
    joining.transports = test::transports_of(test::Sockets::tcp);
    joining.security.insecure = true;
    joining.logging.level = LogLevel::error;
    const Node peer(joining);
    return peer.call<int(int)>("root", "twice", 4).get() == 8 &&
           peer.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(30'000)).get() == 30'000;
  };
  CHECK(next_call_works());

  const Frames frames = correct_frames();
  Mutator mutator(29);
  test::reset_largest_allocation();
  const std::size_t before = test::allocated_bytes();
  const int pieces = test::times(2000, 20'000);
  int parsed = 0;  // or refused
  int refused = 0;
  std::uint64_t connections = 0;
  while (parsed < pieces) {
    const BareSocket socket(port);
    REQUIRE(socket.connected());
    ++connections;
    if (mutator.any(8) != 0) {
      const auto hello = wire::hello_frame(
          {.incarnation = 2 * connections + 1, .session = 1, .joins = true, .name = "stranger"});
      (void)socket.send(std::as_bytes(std::span(hello)));
      // What it will call, so that its calls find something.
      for (std::size_t i = 0; i < 3; ++i)
        (void)socket.send(std::as_bytes(std::span(frames[i])));
    }
    auto fate = BareSocket::Fate::parsed;
    for (int i = 0; i < 50 && fate == BareSocket::Fate::parsed; ++i) {
      socket.drain();
      (void)socket.send(mutator.bytes(frames));
      fate = socket.fate();
      if (fate != BareSocket::Fate::waiting) ++parsed;
      if (fate == BareSocket::Fate::refused) ++refused;
    }
    // Now and then while they come, too.
    if (connections % 500 == 0) CHECK(next_call_works());
  }
  CHECK(refused > pieces / 20);
  CHECK(refused < pieces * 19 / 20);
  CHECK(connections > 100);
  CHECK(test::largest_allocation() <= 512 * 1024);
  CHECK(next_call_works());
  CHECK(test::allocated_bytes() < before + (std::size_t{16} << 20));
}

}  // namespace hostile_bytes_test
}  // namespace batchrpc
