#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "call/function_table.hpp"
#include "dispatch/call_dispatcher.hpp"
#include "future/virtual_wait.hpp"
#include "node/raw_peer.hpp"
#include "recording/call_tracer.hpp"
#include "session/function_limits.hpp"
#include "session/session.hpp"

// What a stream of calls costs the session that answers it.

namespace batchrpc {
namespace session_calls_test {

using wire::FrameKind;

/// Counts the reads of a stream.
class CountedStream final : public Stream {
 public:
  CountedStream(std::unique_ptr<Stream> stream, int& reads)
      : stream_(std::move(stream)), reads_(reads) {}
  IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept override {
    ++reads_;
    return stream_->try_read(buffers);
  }
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override {
    return stream_->try_write(buffers);
  }
  void wait_readable(Task handler) override { stream_->wait_readable(std::move(handler)); }
  void wait_writable(Task handler) override { stream_->wait_writable(std::move(handler)); }
  void shutdown() noexcept override { stream_->shutdown(); }
  [[nodiscard]] std::string description() const override { return stream_->description(); }
  [[nodiscard]] Address local_address() const override { return stream_->local_address(); }

 private:
  std::unique_ptr<Stream> stream_;
  int& reads_;
};

/// A function that counts how often its signature is compared.
class CountedFunction final : public detail::ExposedFunction {
 public:
  CountedFunction(std::shared_ptr<detail::ExposedFunction> function, int& compared)
      : ExposedFunction(function->name, function->signature, function->options),
        function_(std::move(function)),
        compared_(compared) {}
  std::shared_ptr<ExposedFunction> with_signature(std::string_view called_as) override {
    ++compared_;
    return ExposedFunction::with_signature(called_as);
  }
  void run(detail::RunningCall& call) noexcept override { function_->run(call); }
  [[nodiscard]] std::string schema() const override { return function_->schema(); }

 private:
  const std::shared_ptr<detail::ExposedFunction> function_;
  int& compared_;
};

/// A node as sessions see it, which counts how often they have a function looked up.
class Callee final : public SessionHost {
 public:
  explicit Callee(const std::shared_ptr<Loop>& loop)
      : log_(LogLevel::off),
        counters_(*loop),
        calls_({.node = "callee",
                .functions = functions_,
                .loop = loop,
                .loop_tasks = nullptr,
                .workers = nullptr,
                .limits = {},
                .log = log_,
                .log_limits = log_limits_,
                .counters = counters_,
                .refusal = [] { return nullptr; }}),
        parts_{.options = options_,
               .log = log_,
               .log_limits = log_limits_,
               .tracer = tracer_,
               .calls = calls_} {
    add("twice", [](int x) { return 2 * x; });
    add("half", [](int x) { return x / 2; });
  }

  [[nodiscard]] const SessionParts& parts() const noexcept override { return parts_; }
  std::shared_ptr<LocalNode> node() override { return nullptr; }
  [[nodiscard]] wire::Hello own_hello() const override {
    return {.incarnation = 1, .name = "callee"};
  }
  [[nodiscard]] bool is_forked_copy() const noexcept override { return false; }
  std::shared_ptr<Session> find_session(const Session& /*half_open*/,
                                        const wire::Hello& /*hello*/) override {
    return nullptr;
  }
  void session_detached(const std::shared_ptr<Session>& session, const std::string& why) override {
    session->close();
    session_closed(session, why);
  }
  void session_resumed(Session& /*session*/) override {}
  void address(wire::Hello& /*hello*/, std::string_view /*peer*/) const override {}
  [[nodiscard]] bool admit(Session& session, const wire::Hello& hello) override {
    session.set_peer(std::make_shared<PeerIdentity>(
        PeerIdentity{.name = hello.name, .incarnation = hello.incarnation}));
    return true;
  }
  void session_closed(const std::shared_ptr<Session>& /*session*/,
                      const std::string& /*why*/) override {}

  int resolved = 0;

 private:
  template <class F>
  void add(std::string name, F function) {
    functions_.add(std::make_shared<CountedFunction>(
        std::make_shared<detail::TypedFunction<F, detail::FunctionTraits<F>>>(
            std::move(name), function, ExposeOptions{.short_handler = true}),
        resolved));
  }

  NodeOptions options_;
  Log log_;
  LogLimits log_limits_;
  CallTracer tracer_{1};
  FunctionTable functions_;
  NodeCounters counters_;
  CallDispatcher calls_;
  const SessionParts parts_;
};

struct Accepting {
  test::VirtualWorld world;
  std::shared_ptr<Callee> callee = std::make_shared<Callee>(world.loop);
  std::shared_ptr<Transport> transport = world.network->transport(world.loop, "callee");
  std::vector<std::shared_ptr<Session>> sessions{};
  int reads = 0;
  std::unique_ptr<Listener> listener =
      transport->listen(Address::parse("inproc://callee"), [this](std::unique_ptr<Stream> stream) {
        auto session = std::make_shared<Session>(
            callee, world.loop, std::make_shared<test::VirtualWait>(), std::string(), 0);
        session->start(std::make_unique<CountedStream>(std::move(stream), reads), true);
        sessions.push_back(std::move(session));
      });
};

std::vector<Word> define(std::uint32_t number, const std::string& name) {
  return wire::definition_frame(
      {.number = number, .name = name, .signature = std::string(signature<int, int>())});
}

/// Calls of the two functions in turn, one behind the other.
std::vector<Word> many_calls(std::size_t count) {
  std::vector<Word> all;
  for (std::size_t i = 0; i < count; ++i) {
    Encoder encoder(wire::kEnvelopeWords);
    encode_struct<int>(encoder, wire::kBodyPointer, 5);
    wire::finish_frame(
        encoder, {.kind = FrameKind::call, .number = static_cast<std::uint32_t>(i % 2), .id = i});
    all.insert(all.end(), encoder.words().begin(), encoder.words().end());
  }
  return all;
}

std::size_t results(test::RawPeer& peer) {
  std::size_t count = 0;
  for (const auto& words : peer.frames()) {
    if (wire::parse_frame(words).header.kind == FrameKind::result) ++count;
  }
  return count;
}

TEST_CASE("many messages that have come are read with few system calls") {
  Accepting node;
  test::RawPeer peer(node.world, "inproc://callee");
  peer.say_hello();
  peer.send(define(0, "twice"));
  peer.send(define(1, "half"));
  const int before = node.reads;
  peer.send(many_calls(2000));
  CHECK(results(peer) == 2000);
  INFO("reads: " << node.reads - before);
  CHECK(node.reads - before <= 20);
}

TEST_CASE("a signature is compared once for each peer and function") {
  Accepting node;
  for (int peers = 1; peers <= 3; ++peers) {
    test::RawPeer peer(node.world, "inproc://callee");
    peer.say_hello("peer" + std::to_string(peers));
    peer.send(define(0, "twice"));
    peer.send(define(1, "half"));
    CHECK(node.callee->resolved == 2 * (peers - 1));
    for (int round = 0; round < 10; ++round)
      peer.send(many_calls(100));
    CHECK(results(peer) == 1000);
    CHECK(node.callee->resolved == 2 * peers);
  }
}

TEST_CASE("a name or signature that is too long ends the connection") {
  for (const bool name : {true, false}) {
    for (const std::size_t over : {0U, 1U}) {
      Accepting node;
      test::RawPeer peer(node.world, "inproc://callee");
      peer.say_hello();
      peer.send(
          wire::definition_frame({.number = 0,
                                  .name = std::string(name ? kMaxName + over : 5, 'n'),
                                  .signature = std::string(name ? 5 : kMaxSignature + over, 's')}));
      CHECK(peer.closed() == (over == 1));
    }
  }
}

TEST_CASE("a function whose name is too long is refused where it is called") {
  const test::VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  const std::string longest(kMaxName, 'n');
  b.expose(longest, [](int x) { return 2 * x; });
  CHECK(a.call<int(int)>("b", longest, 4).get() == 8);
  CHECK(test::outcome(a.call<int(int)>("b", longest + "n", 4)).code() ==
        ErrorCode::invalid_argument);
  CHECK(a.call<int(int)>("b", longest, 4).get() == 8);
}

}  // namespace session_calls_test
}  // namespace batchrpc
