#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/transport/tcp_transport.hpp"
#include "node/real_nodes.hpp"

// A transport above another one, as encryption is: it makes its handshake on the other's stream,
// and then changes the bytes.

namespace batchrpc {
namespace wrapping_transport_test {

using namespace std::chrono_literals;

constexpr std::byte kHello{0x42};
constexpr std::byte kMask{0x5a};

/// Masks each byte.
class MaskedStream final : public Stream {
 public:
  explicit MaskedStream(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}

  IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept override {
    const IoResult result = inner_->try_read(buffers);
    std::size_t left = result.bytes;
    for (const auto& buffer : buffers) {
      const auto part = buffer.first(std::min(left, buffer.size()));
      std::ranges::transform(part, part.begin(), [](std::byte byte) { return byte ^ kMask; });
      left -= part.size();
    }
    return result;
  }
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override {
    std::array<std::byte, 4096> masked{};
    std::size_t size = 0;
    for (const auto& buffer : buffers) {
      const auto part = buffer.first(std::min(masked.size() - size, buffer.size()));
      for (const std::byte byte : part)
        masked[size++] = byte ^ kMask;
    }
    const auto all = std::span<const std::byte>(masked).first(size);
    return inner_->try_write({&all, 1});
  }
  void wait_readable(Task handler) override { inner_->wait_readable(std::move(handler)); }
  void wait_writable(Task handler) override { inner_->wait_writable(std::move(handler)); }
  void shutdown() noexcept override { inner_->shutdown(); }
  std::size_t unconfirmed_bytes() const noexcept override { return inner_->unconfirmed_bytes(); }
  std::string description() const override { return inner_->description(); }
  Address local_address() const override { return inner_->local_address(); }

 private:
  const std::unique_ptr<Stream> inner_;
};

/// `masked://host:port`: each side greets with a byte before the connection is one. Its state is
/// the loop's.
class MaskedTransport final : public Transport,
                              public std::enable_shared_from_this<MaskedTransport> {
 public:
  explicit MaskedTransport(const std::shared_ptr<Loop>& loop)
      : loop_(loop), inner_(std::dynamic_pointer_cast<SocketLoop>(loop)) {}

  std::vector<std::string> forms() const override { return {"masked://host:port"}; }
  void check(const Address& address, AddressUse use) const override {
    inner_.check(inside(address), use);
  }
  std::optional<int> priority(const Address& address, bool same_host) const override {
    return inner_.priority(inside(address), same_host);
  }
  std::optional<Address> own_address(const ListenPlan& plan) const override {
    if (plan.configured) return std::nullopt;
    return outside(*inner_.own_address({.reached_from = plan.reached_from}));
  }
  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler handler) override {
    auto accept = [weak = weak_from_this(),
                   handler = std::move(handler)](std::unique_ptr<Stream> stream) {
      const auto self = weak.lock();
      if (!self) return;
      self->greet(std::move(stream), self->loop_->now() + 5s,
                  [handler](std::unique_ptr<Stream> made, std::error_code /*error*/) {
                    if (made) handler(std::move(made));
                  });
    };
    return std::make_unique<MaskedListener>(inner_.listen(inside(address), std::move(accept)));
  }
  void connect(const Address& address, TimePoint deadline, ConnectHandler handler) override {
    inner_.connect(inside(address), deadline,
                   [weak = weak_from_this(), deadline, handler = std::move(handler)](
                       std::unique_ptr<Stream> stream, std::error_code error) mutable {
                     const auto self = weak.lock();
                     if (!self) return;
                     if (!stream) return handler(nullptr, error);
                     self->greet(std::move(stream), deadline, std::move(handler));
                   });
  }

 private:
  struct MaskedListener final : Listener {
    explicit MaskedListener(std::unique_ptr<Listener> its) : inner(std::move(its)) {}
    Address address() const override { return outside(inner->address()); }
    const std::unique_ptr<Listener> inner;
  };
  struct Greeting {
    std::unique_ptr<Stream> stream;
    ConnectHandler handler;
    TimerId timer = 0;
  };

  static Address inside(const Address& address) {
    return Address::parse("tcp://" + address.name());
  }
  static Address outside(const Address& address) {
    return Address::parse("masked://" + address.name());
  }

  void greet(std::unique_ptr<Stream> stream, TimePoint deadline, ConnectHandler handler) {
    const std::uint64_t number = ++last_;
    Greeting& greeting = greetings_[number];
    greeting.stream = std::move(stream);
    greeting.handler = std::move(handler);
    greeting.timer = loop_->schedule(deadline, [weak = weak_from_this(), number] {
      if (const auto self = weak.lock()) self->end(number, std::errc::timed_out);
    });
    const std::span<const std::byte> hello(&kHello, 1);
    if (greeting.stream->try_write({&hello, 1}).bytes != 1) return end(number, std::errc::io_error);
    wait(number);
  }
  void wait(std::uint64_t number) {
    greetings_.at(number).stream->wait_readable([weak = weak_from_this(), number] {
      if (const auto self = weak.lock()) self->read(number);
    });
  }
  void read(std::uint64_t number) {
    std::byte byte{};
    const std::span<std::byte> room(&byte, 1);
    const IoResult result = greetings_.at(number).stream->try_read({&room, 1});
    if (result.would_block()) return wait(number);
    end(number, result.bytes == 1 && byte == kHello ? std::errc() : std::errc::protocol_error);
  }
  void end(std::uint64_t number, std::errc error) {
    const auto found = greetings_.find(number);
    if (found == greetings_.end()) return;
    Greeting greeting = std::move(found->second);
    greetings_.erase(found);
    loop_->cancel(greeting.timer);
    if (error != std::errc()) return greeting.handler(nullptr, std::make_error_code(error));
    greeting.handler(std::make_unique<MaskedStream>(std::move(greeting.stream)), {});
  }

  const std::shared_ptr<Loop> loop_;
  TcpTransport inner_;
  std::map<std::uint64_t, Greeting> greetings_;
  std::uint64_t last_ = 0;
};

TEST_CASE("a transport may make a handshake, and wrap the streams of another one", "[threads]") {
  std::vector<std::shared_ptr<MaskedTransport>> made;
  NodeOptions options = test::real_root("root");
  options.transports = {[&made](const TransportContext& node) {
    made.push_back(std::make_shared<MaskedTransport>(node.loop));
    return made.back();
  }};
  options.join = "masked://127.0.0.1:0";
  const Node root(options);
  CHECK(root.address().starts_with("masked://127.0.0.1:"));
  options.name = "a";
  options.rank = -1;
  options.join = root.address();
  const Node a(options);
  a.expose("echo", [](const Bytes& bytes) { return bytes; });
  root.expose("twice", [](int x) { return 2 * x; });
  Bytes bytes = Bytes::allocate(1 << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes.mutable_data()[i] = static_cast<std::byte>(i * 7 >> 3);
  CHECK(root.call<Bytes(Bytes)>("a", "echo", bytes).get() == bytes);
  CHECK(a.call<int(int)>("root", "twice", 4).get() == 8);

  // Who does not greet is no peer, and holds nothing up.
  NodeOptions plain = test::real_root("plain");
  plain.rank = -1;
  plain.join = "tcp://" + root.address().substr(root.address().rfind('/') + 1);
  plain.join_timeout = 200ms;
  CHECK_THROWS_AS(Node(plain), JoinFailed);
  CHECK(a.call<int(int)>("root", "twice", 5).get() == 10);
}

}  // namespace wrapping_transport_test
}  // namespace batchrpc
