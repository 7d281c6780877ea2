#include <exception>
#include <string>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "session/incoming_calls.hpp"

// The peer's calls that are refused before they reach their function.
namespace batchrpc {
namespace {

// The most bytes of refusals that a peer gets while it does not take its replies.
constexpr std::uint64_t kRefusalBytes = std::uint64_t{16} << 20;
// The bytes of replies beyond its limit at which calls of the library are refused, too.
constexpr std::uint64_t kRepliesOfLibrary = std::uint64_t{16} << 20;

std::string not_run(const CalledFunction& function) {
  return "'" + function.shown + "' was not run";
}

}  // namespace

// Whether a call is refused because the peer has not taken the replies to others. Throws BadMessage
// when it takes none for too long.
bool IncomingCalls::refuses_for_replies(const CalledFunction& function,
                                        const wire::FrameView& frame) {
  const std::uint64_t held = link_->output().held().replies();
  if (held <= reply_limit_) {
    unread_bytes_ = 0;
    return false;
  }
  if ((frame.header.flags & wire::kNoReply) != 0) return false;
  // References and joins may continue for a while when replies to the program have used all.
  if (!function.of_program && held - reply_limit_ <= kRepliesOfLibrary) return false;
  note_unread(
      refuse(function, frame,
             std::to_string(held) +
                 " bytes of replies are waiting for their caller to read them, and the limit is " +
                 std::to_string(reply_limit_) + " (NodeOptions::limits.max_outstanding_bytes)"));
  return true;
}

// Notes what is sent to a peer because it calls. Throws BadMessage if it goes on without reading.
void IncomingCalls::note_unread(std::uint64_t bytes) {
  const std::uint64_t held = link_->output().held().replies();
  if (held <= reply_limit_) return;
  unread_bytes_ += bytes;
  if (unread_bytes_ <= kRefusalBytes) return;
  throw BadMessage("it keeps calling but does not read its replies, of which " +
                   std::to_string(held) +
                   " bytes are waiting (NodeOptions::limits.max_outstanding_bytes)");
}

// Whether a call is refused because this node holds too much of the peer's calls. Throws BadMessage
// for messages of the library, which no honest peer sends in such numbers.
bool IncomingCalls::refuses_for_memory(const CalledFunction& function, const wire::FrameView& frame,
                                       std::uint64_t bytes) {
  const detail::ByteBudget& budget = budget_.of(function.of_program);
  if (budget.fits(bytes)) return false;
  const std::string why = "the unfinished calls of " + link_->peer_name() + " take " +
                          std::to_string(budget.used()) + " bytes at this node, and " +
                          std::to_string(bytes) + " more are beyond the limit of " +
                          std::to_string(budget.limit());
  if (function.of_program) {
    refuse(function, frame,
           why + " (NodeOptions::limits.max_outstanding_bytes and " +
               std::to_string(CallBudget::kBeyondCredit) + ")");
  } else if ((frame.header.flags & wire::kNoReply) == 0) {
    link_->send(wire::error_frame(frame.header.id, std::make_exception_ptr(Overloaded(why))));
  } else if (bytes <= budget.limit() && budget.used() <= 2 * budget.limit()) {
    return false;  // calls that want a reply are refused, so they cannot fill what is beyond
  } else {
    throw BadMessage(why + " for messages of the library");
  }
  return true;
}

// Does not run a call: answers it with Overloaded, or logs that a notification is dropped. Returns
// the bytes of the answer.
std::uint64_t IncomingCalls::refuse(const CalledFunction& function, const wire::FrameView& frame,
                                    const std::string& why) {
  return refuse(function, frame.header, frame.words.size_bytes(),
                std::make_exception_ptr(Overloaded(not_run(function) + ": " + why)));
}

// The same with another error. `bytes`: those of the call.
std::uint64_t IncomingCalls::refuse(const CalledFunction& function, const wire::FrameHeader& call,
                                    std::uint64_t bytes, const std::exception_ptr& error) {
  std::vector<Word> frame;
  if ((call.flags & wire::kNoReply) == 0) {
    frame = wire::error_frame(call.id, error);
  } else {
    link_->parts().log_limits.dropped_notifications.write(
        link_->parts().log, LogLevel::warning, link_->loop()->now(),
        "a notification from " + link_->peer_name() + " was dropped: " + describe(error));
  }
  const std::uint64_t answer = frame.size() * sizeof(Word);
  if (FunctionCounters* const counters = sink_.counters_of(function)) {
    counters->began(bytes);
    counters->failed(wire::code_on_wire(error, false), answer);
  }
  if (!frame.empty()) link_->send(frame);
  return answer;
}

void IncomingCalls::refuse_untaken(const wire::FrameHeader& call, std::uint64_t bytes,
                                   NotTaken why) {
  const CalledFunction& function = function_of(call);
  const auto error = not_taken_error(why, not_run(function), link_->options(), false);
  if ((call.flags & wire::kNoReply) != 0) {
    if (!function.of_program) throw BadMessage(describe(error));  // others rely on it
    let_drop(call.id);
  }
  note_unread(refuse(function, call, bytes, error));
}

std::exception_ptr IncomingCalls::no_memory(const CalledFunction& function,
                                            std::uint64_t bytes) const {
  return not_taken_error({NotTaken::memory, bytes}, not_run(function), link_->options(), false);
}

// Has the sender of a notification send the payloads that are dropped: it learns of no refusal, and
// must not wait for ever.
void IncomingCalls::let_drop(std::uint64_t notification) {
  send_credit(notification, wire::kAllCredit);
  note_unread(wire::kEnvelopeWords * sizeof(Word));
}

}  // namespace batchrpc
