#include "call/incoming_call.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/wire/envelope.hpp"

// What may be done with a call of a peer, and that it is answered once.

namespace batchrpc::detail {
namespace incoming_call_test {

// A call that was just read is a view of its message, and a call that runs lies in another.
static_assert(!std::is_move_constructible_v<ArrivedCall>);
static_assert(!std::is_move_constructible_v<RunningCall>);
static_assert(std::is_nothrow_move_constructible_v<WaitingCall>);
static_assert(std::is_nothrow_move_constructible_v<DeferredCall>);
static_assert(!std::is_convertible_v<WaitingCall&, RunningCall&>);

class Sink final : public ReplySink, public std::enable_shared_from_this<Sink> {
 public:
  void send_result(std::uint64_t /*call*/, Encoder& /*encoder*/,
                   CallRecording* /*recording*/) override {
    ++results;
  }
  std::uint64_t send_error(std::uint64_t /*call*/, const std::exception_ptr& error, bool /*began*/,
                           CallRecording* /*recording*/) override {
    errors.push_back(code_of(error));
    if (kept) taken_by_another_thread = kept->cancel_if_waiting();
    return 0;
  }
  std::shared_ptr<ReplySink> keep(const Ref<CallState>& call, bool /*wants_reply*/) override {
    kept = call;
    return shared_from_this();
  }
  void answered(const CallState& /*call*/) override { ++ended; }
  [[nodiscard]] bool is_forked_copy() const noexcept override { return false; }
  [[nodiscard]] bool is_over(TimePoint /*deadline*/) const noexcept override { return over; }

  int results = 0;
  std::vector<ErrorCode> errors{};
  Ref<CallState> kept{};
  int ended = 0;
  bool over = false;
  bool taken_by_another_thread = false;  // a cancellation that came with the error
};

struct Incoming {
  explicit Incoming(std::optional<TimePoint> deadline = std::nullopt) {
    encode_struct<int>(encoder, wire::kBodyPointer, 5);
    arguments.segment = std::span(encoder.words()).subspan(1);  // without the frame's own word
    arrived.emplace(*sink, 7, true, CallContext(caller, deadline), arguments);
  }
  WaitingCall keep() { return std::move(*arrived).keep(); }

  std::shared_ptr<Sink> sink = std::make_shared<Sink>();
  std::shared_ptr<const PeerIdentity> caller =
      std::make_shared<PeerIdentity>(PeerIdentity{.name = "caller"});
  Encoder encoder{wire::kEnvelopeWords};
  CallArguments arguments;
  std::optional<ArrivedCall> arrived;
};

int argument_of(const RunningCall& call) {
  Decoder decoder = call.arguments();
  return std::get<0>(decode_struct<int>(decoder, wire::kBodyPointer - 1));
}

TEST_CASE("a call that is dropped unanswered is answered with BrokenPromise, in every state") {
  Incoming incoming;
  SECTION("just read") {}
  SECTION("waiting") { static_cast<void>(incoming.keep()); }
  SECTION("running in place") { static_cast<void>(std::move(*incoming.arrived).begin()); }
  SECTION("running and kept") {
    DeferredCall deferred(std::move(*std::move(*incoming.arrived).begin()));
    const DeferredCall moved = std::move(deferred);
  }
  incoming.arrived.reset();
  CHECK(incoming.sink->errors == std::vector{ErrorCode::broken_promise});
  CHECK(incoming.sink->results == 0);
}

TEST_CASE("a call is answered once, whatever its function does then") {
  Incoming incoming;
  RunningCall& running = *std::move(*incoming.arrived).begin();
  Encoder reply(wire::kEnvelopeWords);
  running.reply(reply);
  running.reply(reply);
  running.fail(std::make_exception_ptr(InvalidArgument("late")));
  incoming.arrived.reset();
  CHECK(incoming.sink->results == 1);
  CHECK(incoming.sink->errors.empty());
}

TEST_CASE("a call that waits has its arguments when its message is gone") {
  Incoming incoming;
  WaitingCall waiting = incoming.keep();
  incoming.arguments = {};
  incoming.encoder.reset(wire::kEnvelopeWords);
  WaitingCall moved = std::move(waiting);
  RunningCall* const running = std::move(moved).begin();
  REQUIRE(running != nullptr);
  CHECK(argument_of(*running) == 5);
  running->drop_arguments();
  CHECK(running->bytes() == 0);
}

TEST_CASE("a deferred call answers after its function has returned, and can be cancelled") {
  Incoming incoming;
  std::optional<DeferredCall> deferred;
  deferred.emplace(std::move(*std::move(*incoming.arrived).begin()));
  incoming.arrived.reset();
  CHECK(incoming.sink->errors.empty());
  CHECK(argument_of(*deferred) == 5);
  CHECK_FALSE(incoming.sink->kept->cancel_if_waiting());
  incoming.sink->kept->cancel();
  CHECK(deferred->cancelled());
  Encoder reply(wire::kEnvelopeWords);
  deferred->reply(reply);
  CHECK(incoming.sink->results == 0);  // nobody waits for it
  CHECK(incoming.sink->ended == 1);
}

TEST_CASE("a call that was cancelled while it waited does not begin, and gets no answer") {
  Incoming incoming;
  {
    WaitingCall waiting = incoming.keep();
    CHECK(incoming.sink->kept->cancel_if_waiting());
    CHECK(std::move(waiting).begin() == nullptr);
  }
  CHECK(incoming.sink->errors.empty());
  CHECK(incoming.sink->ended == 1);
}

TEST_CASE("a call that has waited until its deadline does not begin") {
  Incoming incoming(TimePoint{} + std::chrono::seconds(1));
  incoming.sink->over = true;
  WaitingCall waiting = incoming.keep();
  CHECK(std::move(waiting).begin() == nullptr);
  CHECK(incoming.sink->errors == std::vector{ErrorCode::timed_out});
}

TEST_CASE("a call that is refused is not answered by the thread that would cancel it, too") {
  Incoming incoming;
  WaitingCall waiting = incoming.keep();
  waiting.refuse(std::make_exception_ptr(Overloaded("full")));
  CHECK_FALSE(incoming.sink->taken_by_another_thread);
  CHECK(incoming.sink->errors == std::vector{ErrorCode::overloaded});
}

}  // namespace incoming_call_test
}  // namespace batchrpc::detail
