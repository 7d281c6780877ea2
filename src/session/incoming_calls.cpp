#include "session/incoming_calls.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/coarse_deadline.hpp"
#include "call/function_table.hpp"
#include "call/local_node.hpp"
#include "session/call_table.hpp"
#include "session/flow_control.hpp"
#include "session/function_limits.hpp"
#include "session/read_turn.hpp"
#include "transport/end_in_turns.hpp"

// How the peer's calls come in: in order, with their payloads, and on to the function.
namespace batchrpc {
namespace {

constexpr int kEndedAtOnce = 256;  // calls

}  // namespace

IncomingCalls::IncomingCalls(std::shared_ptr<SessionLink> link)
    : link_(std::move(link)),
      sink_(link_->parts().calls),
      reply_limit_(link_->options().limits.max_outstanding_bytes),
      budget_(link_->options().limits) {}

// --- functions

void IncomingCalls::define(const wire::FrameView& frame) {
  wire::Definition definition = wire::read_definition(frame);
  if (definition.number != functions_.size() || functions_.size() >= kMaxFunctions) {
    throw BadMessage("function numbers are not in order");
  }
  if (definition.name.size() > kMaxName || definition.signature.size() > kMaxSignature) {
    throw BadMessage("a function's name or signature is too long");
  }
  defined_bytes_ += definition.name.size() + definition.signature.size();
  if (defined_bytes_ > kMaxDefinitions) {
    throw BadMessage("the names and signatures of functions are more than 16 MiB");
  }
  functions_.push_back(std::make_unique<CalledFunction>(
      sink_.define(std::move(definition.name), std::move(definition.signature))));
}

CalledFunction& IncomingCalls::function_of(const wire::FrameHeader& call) {
  if (call.number >= functions_.size())
    throw BadMessage("a call of a function that was not defined");
  return *functions_[call.number];
}

// --- order

// Returns the key by which the call is ordered. Nothing: it starts as soon as it is complete.
std::optional<CallOrder::Key> IncomingCalls::ordering_key_of(const CalledFunction& function,
                                                             const wire::FrameView& frame) {
  if (function.ordering_key == nullptr) return std::nullopt;
  try {
    Decoder decoder(frame.segment(), {});
    return function.ordering_key(decoder);
  } catch (const BadMessage&) {  // the function will refuse it
    return std::nullopt;
  }
}

// Whether a call is refused before its function is looked at. `bytes`: what it would take here.
inline bool IncomingCalls::refuses(const CalledFunction& function, const wire::FrameView& frame,
                                   std::uint64_t bytes) {
  if (refuses_for_replies(function, frame)) return true;
  const detail::ByteBudget& budget = budget_.of(function.of_program);
  if (budget.used() <= budget.limit() / 2) [[likely]]
    return false;  // then every call fits
  return refuses_for_memory(function, frame, bytes);
}

void IncomingCalls::take(const wire::FrameView& frame, std::vector<Bytes>& payloads) {
  CalledFunction& function = function_of(frame.header);
  if (!order_.empty()) {
    if (const auto key = ordering_key_of(function, frame); key && order_.has(*key)) {
      const auto bytes =
          detail::bytes_of_kept_call(frame.words.size_bytes(), bytes_of(payloads), payloads.size());
      if (refuses(function, frame, bytes)) return;
      detail::ByteCharge charge(budget_.of(function.of_program));
      charge.set(bytes);
      try {
        detail::own_payloads(payloads);
        order_.append(*key, frame.header.id,
                      {.words = {frame.words.begin(), frame.words.end()},
                       .payloads = std::move(payloads),
                       .deadline = deadline_of(frame),
                       .kept = {},
                       .charge = std::move(charge)});
      } catch (const std::bad_alloc&) {
        return refuse_untaken(frame.header, frame.words.size_bytes(), {NotTaken::memory, bytes});
      }
      const std::uint64_t limit = link_->options().limits.max_payload_bytes;
      if (order_.waiting_bytes() > limit) {
        throw BadMessage(std::to_string(order_.waiting_bytes()) +
                         " bytes of calls are queued behind a call whose payloads have not arrived "
                         "(limit: max_payload_bytes, " +
                         std::to_string(limit) + ")");
      }
      return;
    }
  }
  dispatch(function, frame, payloads, deadline_of(frame));
}

void IncomingCalls::expect(const wire::FrameView& frame, PayloadAssembler& assembler) {
  CalledFunction& function = function_of(frame.header);
  const std::uint64_t id = frame.header.id;
  const std::uint64_t bytes = PayloadAssembler::size_of(frame);
  if (assembler.is_too_large(frame)) {
    assembler.refuse(frame);
    return refuse_untaken(frame.header, frame.words.size_bytes(), {NotTaken::payloads, bytes});
  }
  const auto kept =
      detail::bytes_of_kept_call(frame.words.size_bytes(), bytes, frame.payload_sizes.size());
  // Whether it is refused for the replies to others is seen when it has come: the peer acknowledges
  // them meanwhile.
  if (refuses_for_memory(function, frame, kept)) {
    assembler.refuse(frame);
    if ((frame.header.flags & wire::kNoReply) != 0) let_drop(id);
    return;
  }
  const auto deadline = deadline_of(frame);
  detail::ByteCharge charge(budget_.of(function.of_program));
  charge.set(kept);
  try {
    assembler.begin(frame, deadline, nullptr, std::move(charge));
  } catch (const std::bad_alloc&) {
    assembler.refuse(frame);
    return refuse_untaken(frame.header, frame.words.size_bytes(), {NotTaken::memory, kept});
  }
  if (const auto key = ordering_key_of(function, frame)) order_.reserve(*key, id);
  auto gate = std::make_shared<FlowControl>(weak_from_this(), id, bytes);
  detail::ReceivePlan plan = announce(function, frame, deadline, gate);
  if (plan.held) gate->hold();
  const bool is_shut = gate->is_shut();
  const bool waits = bytes > wire::kEagerBytes;
  if (waits && !is_shut) send_credit(id, wire::kAllCredit);
  if (waits) note_unread(wire::kEnvelopeWords * sizeof(Word));
  if (waits || plan.held) link_->connection().flush();  // the sender waits for it
  assembler.receive(id, std::move(plan), std::move(gate));
}

detail::ReceivePlan IncomingCalls::announce(CalledFunction& function, const wire::FrameView& frame,
                                            std::optional<TimePoint> deadline,
                                            const std::shared_ptr<FlowControl>& gate) {
  try {
    const CallContext context(link_->identity(), deadline);
    const detail::ContextScope scope(context);
    const detail::CurrentNode current(link_->node());
    Decoder decoder(frame.segment(), {});
    return sink_.announce(function, decoder, gate);
  } catch (...) {  // the call itself will get the error
    return {};
  }
}

void IncomingCalls::take_whole(PayloadAssembler::Whole call) {
  const wire::FrameView frame = wire::parse_frame(call.words);
  const auto key = ordering_key_of(function_of(frame.header), frame);
  if (!key) return dispatch_late(std::move(call));
  order_.fill(frame.header.id, std::move(call));
  run_in_turn(*key);
}

void IncomingCalls::give_up(const PayloadAssembler::Whole& call) {
  const wire::FrameView frame = wire::parse_frame(call.words);
  const auto key = ordering_key_of(function_of(frame.header), frame);
  if (!key) return;
  order_.give_up(frame.header.id);
  run_in_turn(*key);
}

// Runs the calls whose turn it is, for the turn of a connection. The rest of a long line is left to
// later turns of the loop.
void IncomingCalls::run_in_turn(const CallOrder::Key& key) {
  if (draining_.contains(key)) return;
  ReadTurn turn(*link_->loop(), link_->loop()->ticks(), false);
  while (auto next = order_.take(key)) {
    run_late(*std::move(next));
    if (!turn.count_message(0)) continue;
    detail::end_turn();
    draining_.insert(key);
    try {
      return link_->loop()->defer([self = shared_from_this(), key] {
        self->draining_.erase(key);
        self->run_in_turn(key);
      });
    } catch (const std::bad_alloc&) {  // goes on at once
      draining_.erase(key);
    }
  }
}

// Answers with the error of a call that cannot be handed over: the thread may not be reading its
// connection any more.
void IncomingCalls::run_late(PayloadAssembler::Whole whole) {
  const wire::FrameHeader header = wire::parse_frame(whole.words).header;
  try {
    dispatch_late(std::move(whole));
  } catch (const std::exception&) {  // BadMessage, or no memory
    if ((header.flags & wire::kNoReply) == 0)
      send_error(header.id, std::current_exception(), false, nullptr);
  }
}

// --- on to the function

std::optional<TimePoint> IncomingCalls::deadline_of(const wire::FrameView& frame) const {
  if (frame.header.value == 0) return std::nullopt;
  constexpr std::uint64_t kLongest = 1'000'000ULL * 60 * 60 * 24 * 365;
  const std::chrono::microseconds left(std::min<std::uint64_t>(frame.header.value, kLongest));
  const Loop& loop = *link_->loop();
  // Never earlier than the caller's own deadline. Otherwise nested calls would end before it, at
  // every level.
  if (left >= kCoarseFrom) return loop.coarse_now() + loop.coarse_lag() + left;
  return loop.now() + left;
}

// Flattened, because every incoming call goes through it.
[[gnu::flatten]] void IncomingCalls::dispatch(CalledFunction& function,
                                              const wire::FrameView& frame,
                                              std::vector<Bytes>& payloads,
                                              std::optional<TimePoint> deadline) {
  if (refuses(function, frame, frame.words.size_bytes())) return;
  detail::CallArguments arguments{.segment = frame.segment(),
                                  .payloads = std::move(payloads),
                                  .charge = detail::ByteCharge(budget_.of(function.of_program))};
  detail::ArrivedCall call(*this, frame.header.id, (frame.header.flags & wire::kNoReply) == 0,
                           context_of(function, frame, deadline), arguments);
  hand_over(function, std::move(call));
}

// Runs a call that has waited since its frame came.
void IncomingCalls::dispatch_late(PayloadAssembler::Whole whole) {
  const wire::FrameView frame = wire::parse_frame(whole.words);
  const bool wants_reply = (frame.header.flags & wire::kNoReply) == 0;
  if (caller_gone_ && wants_reply) return;
  CalledFunction& function = function_of(frame.header);
  if (refuses_for_replies(function, frame)) return;
  detail::CallArguments arguments{.segment = frame.segment(),
                                  .payloads = std::move(whole.payloads),
                                  .receive_plan = std::move(whole.kept),
                                  .charge = std::move(whole.charge)};
  detail::ArrivedCall call(*this, frame.header.id, wants_reply,
                           context_of(function, frame, whole.deadline), arguments);
  if (!call.is_late()) return hand_over(function, std::move(call));
  if (function.of_program) {
    if (FunctionCounters* const counters = sink_.counters_of(function))
      call.count_by(*counters, link_->connection().read_at(), call.bytes());
  }
  call.refuse_late();
}

void IncomingCalls::hand_over(CalledFunction& function, detail::ArrivedCall&& call) {
  const CallArrival arrival{
      .node = link_->node(), .at = link_->connection().read_at(), .bytes = call.bytes()};
  try {
    sink_.take(function, std::move(call), arrival);
  } catch (const std::bad_alloc&) {  // before it began, else the function answers
    call.refuse(no_memory(function, arrival.bytes));
  }
}

// --- the end of calls

void IncomingCalls::cancel(std::uint64_t call) {
  if (order_.remove(call)) return;
  if (const auto found = in_flight_.take(call)) found->cancel();
}

void IncomingCalls::refuse_waiting(const std::exception_ptr& error,
                                   const std::vector<std::uint64_t>& coming_in) {
  const auto refuse = [&](std::uint64_t call) {
    if (call < CallTable::kNotifications) send_error(call, error, false, nullptr);
  };
  for (const auto& call : in_flight_.all()) {
    if (call->cancel_if_waiting()) refuse(call->id);
  }
  for (const PayloadAssembler::Whole& call : order_.take_all())
    refuse(wire::parse_frame(call.words).header.id);
  for (const std::uint64_t call : coming_in)
    refuse(call);  // the caller withdraws the rest of the call
}

void IncomingCalls::close() {
  if (std::exchange(caller_gone_, true)) return;
  in_flight_.close();
  detail::end_in_turns(*link_->loop(), [self = shared_from_this()] { return self->end_some(); });
}

// Returns whether none is left.
bool IncomingCalls::end_some() {
  // When the node ends, nobody else is to be served.
  const auto node = link_->node();
  const bool all = !node || node->refusal();
  for (int i = 0; i < kEndedAtOnce || all; ++i) {
    if (!end_one()) return true;
  }
  return false;
}

// Cancels a call, or runs the next one in line. False: there is none.
bool IncomingCalls::end_one() {
  if (const auto call = in_flight_.take_next()) {
    if (call->id < CallTable::kNotifications) call->cancel();
    return true;
  }
  const auto key = order_.any_key();
  if (!key) return false;
  if (order_.give_up_first(*key)) return true;
  if (auto next = order_.take(*key)) run_late(*std::move(next));
  return true;
}

std::string IncomingCalls::answering_functions() {
  std::map<std::string, std::size_t> counts;
  std::size_t waiting = 0;
  for (const auto& call : in_flight_.all()) {
    if (call->waits()) ++waiting;
    if (const auto function = call->function()) ++counts[function->shown];
  }
  std::string text;
  for (const std::string& function : count_texts(counts))
    text += (text.empty() ? "" : ", ") + function;
  if (waiting > 0)
    text += "; " + std::to_string(waiting) + (waiting == 1 ? " of them has" : " of them have") +
            " not started";
  return text;
}

}  // namespace batchrpc
