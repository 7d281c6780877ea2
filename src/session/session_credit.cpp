#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/function_table.hpp"
#include "session/session.hpp"

// How much of calls and replies may be under way, and who waits for room: docs/decisions/0016.
namespace batchrpc {
namespace {

// What a call's frame takes beside its arguments.
constexpr std::uint64_t kEnvelopeBytes = 4096;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
// How much may be said to a peer that takes no replies, of each call that none can be run for it.
constexpr std::uint64_t kRefusalBytes = std::uint64_t{16} << 20;

// Whether `bytes` more fit beside those in use. What never would needs half of it free.
bool fits(std::uint64_t used, std::uint64_t bytes, std::uint64_t limit) {
  return bytes <= limit ? used <= limit - bytes : used <= limit / 2;
}

}  // namespace

// --- calls of ours

// Of a handler's call only what has not arrived counts, which the peer reads whatever it waits for:
// so that calls which call back never wait for each other. By who holds the lock.
bool Session::has_credit(std::uint64_t bytes, CreditOf whose, std::uint64_t promised) const {
  const OutputQueue& output = connection_->output();
  std::uint64_t used = output.held_calls_locked();
  if (whose == CreditOf::others) {
    used = std::max(used + output.held_paused_locked(), calls_.bytes());
  }
  return fits(used + promised, bytes, credit_limit_);
}

// By who holds the lock.
bool Session::takes_call(std::string_view function, std::uint64_t bytes) {
  const bool fits_all = has_credit(bytes, CreditOf::others);
  const bool is_promised = std::any_of(credit_lines_.begin(), credit_lines_.end(),
                                       [](const CreditLine& line) { return line.promised > 0; });
  if (fits_all && !is_promised) return true;
  const CreditOf whose = CallContext::current() != nullptr ? CreditOf::handlers : CreditOf::others;
  if (!fits_all && !has_credit(bytes, whose) && !is_of_library(function)) return false;
  CreditLine& line = line_of(whose);
  line.promised -= std::min(line.promised, bytes);
  return true;
}

std::exception_ptr Session::out_of_credit(std::string_view function, std::uint64_t bytes,
                                          TimePoint now) const {
  std::uint64_t used = 0;
  {
    const std::lock_guard lock(mutex_);
    const OutputQueue& output = connection_->output();
    used = std::max(output.held_calls_locked() + output.held_paused_locked(), calls_.bytes());
  }
  const std::string name(shown_name(function));
  Overloaded error(
      "'" + name + "' was not sent to " + peer_name() + ": its " + std::to_string(bytes) +
      " bytes and the " + std::to_string(used) +
      " bytes of calls that are not finished are more than NodeOptions::max_outstanding_bytes (" +
      std::to_string(credit_limit_) + "); call again when some are, or wait_for_credit() first");
  report_refusal(error, name, peer_name(), now, Guarantee::bounded_memory);
  if (counters_ != nullptr) counters_->refused(peer_name(), counted_name(function), error, now);
  return std::make_exception_ptr(std::move(error));
}

Future<void> Session::wait_for_credit(std::uint64_t bytes) {
  CreditWait wait{.bytes = std::min(bytes, kMostBytes), .promise = {}, .context = {}};
  auto future = wait.promise.get_future();
  const CallContext* const context = CallContext::current();
  if (context != nullptr) wait.context = *context;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      line_of(context != nullptr ? CreditOf::handlers : CreditOf::others)
          .waits.push_back(std::move(wait));
      waits_for_credit_.store(true, std::memory_order_relaxed);
    }
  }
  if (wait.promise.pending()) {
    wait.promise.set_error(NotSent("the connection to " + peer_name() +
                                   " has just broken: there is no credit; ask again"));
  } else {
    serve_credit();
  }
  return future;
}

// The first that there is room for, those of handlers first.
std::optional<Session::CreditWait> Session::next_with_credit() {
  const std::lock_guard lock(mutex_);
  if (closed_) return std::nullopt;
  std::optional<CreditWait> next;
  std::uint64_t promised = 0;
  for (const CreditOf whose : {CreditOf::handlers, CreditOf::others}) {
    CreditLine& line = line_of(whose);
    promised += line.promised;
    if (next || line.waits.empty()) continue;
    const std::uint64_t bytes = line.waits.front().bytes + kEnvelopeBytes;
    if (!has_credit(bytes, whose, promised)) continue;
    line.promised += line.waits.front().bytes;
    next = std::move(line.waits.front());
    line.waits.pop_front();
  }
  const bool more = std::any_of(credit_lines_.begin(), credit_lines_.end(),
                                [](const CreditLine& line) { return !line.waits.empty(); });
  waits_for_credit_.store(more, std::memory_order_relaxed);
  return next;
}

void Session::serve_credit() {
  while (auto next = next_with_credit()) {
    std::optional<detail::ContextScope> scope;  // what goes on here is its handler
    if (next->context) scope.emplace(*next->context);
    next->promise.set_value();
  }
}

// By the loop, since it runs what continues the waits.
void Session::serve_credit_soon() {
  if (!waits_for_credit_.load(std::memory_order_relaxed)) return;
  if (serves_credit_.exchange(true, std::memory_order_acq_rel)) return;
  loop_->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->serves_credit_.store(false, std::memory_order_release);
    self->serve_credit();
  });
}

// Room that was kept for waits which have made no call is others' again.
void Session::forget_promised_credit() {
  {
    const std::lock_guard lock(mutex_);
    for (CreditLine& line : credit_lines_)
      line.promised = 0;
  }
  serve_credit_soon();
}

// --- calls of the peer

bool Session::is_behind() const {
  const OutputQueue& output = connection_->output();
  return output.queued_bytes() + output.unanswered_bytes() + output.kept_bytes() > credit_limit_;
}

// Whether a call is refused since the peer has not taken the replies to others. Throws BadMessage
// when it takes none for too long.
bool Session::refuses_for_replies(const wire::FrameView& frame) {
  const std::uint64_t held = connection_->output().held_replies();
  if (held <= credit_limit_) {
    refused_bytes_ = 0;
    return false;
  }
  if ((frame.header.flags & wire::kNoReply) != 0) return false;
  const CalledFunction& function = incoming_[frame.header.number];
  if (!function.of_program) return false;
  const auto error = wire::error_frame(
      frame.header.id,
      std::make_exception_ptr(
          Overloaded("'" + function.shown + "' was not run: " + std::to_string(held) +
                     " bytes of replies have not been taken by their caller, the limit is " +
                     std::to_string(credit_limit_) + " (NodeOptions::max_outstanding_bytes)")));
  const std::size_t bytes = error.size() * sizeof(Word);
  refused_bytes_ += bytes;
  const bool is_too_much = refused_bytes_ > kRefusalBytes;
  if (FunctionCounters* const counters = calls_of_peer_.counters_of(function)) {
    counters->began(frame.words.size_bytes());
    counters->failed(ErrorCode::overloaded, is_too_much ? 0 : bytes);
  }
  if (is_too_much) {
    throw BadMessage("it calls and does not take the replies, of which " + std::to_string(held) +
                     " bytes wait (NodeOptions::max_outstanding_bytes)");
  }
  send(error);
  return true;
}

}  // namespace batchrpc
