#include "batchrpc/call/explain.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/plain_text.hpp"
#include "call/duration_text.hpp"

namespace batchrpc {
namespace {

using Kind = ConnectionEvent::Kind;

std::string_view title_of(Guarantee guarantee) {
  constexpr std::array<std::string_view, 11> kTitles{"",
                                                     "at most once",
                                                     "reconnect without a storm",
                                                     "deadlines travel",
                                                     "cancellation",
                                                     "bounded memory",
                                                     "a dead peer is found",
                                                     "overload degrades, never collapses",
                                                     "shutdown",
                                                     "membership",
                                                     "version skew"};
  const auto number = static_cast<std::size_t>(guarantee);
  return number < kTitles.size() ? kTitles[number] : "";
}

// Returns what a guarantee means for a call that ended in this error.
std::string_view meaning_of(Guarantee guarantee, const Error& error) {
  const bool may_have_run = error.may_have_run();
  switch (guarantee) {
    case Guarantee::at_most_once:
      if (error.code() == ErrorCode::remote_error) {
        const CallDiagnostics* const diagnostics = error.diagnostics();
        if (may_have_run && diagnostics != nullptr && diagnostics->attempt > 1) {
          return "an attempt ran and threw, or may have run";
        }
        return may_have_run ? "it ran once and threw"
                            : "it never ran: the code that creates its object threw";
      }
      if (error.code() == ErrorCode::unknown) {
        return "the peer no longer remembers it; it may have run, so it is not sent again";
      }
      return may_have_run ? "it may have run, so it is not sent again" : "it never ran";
    case Guarantee::deadline:
      return may_have_run ? "no answer came before the deadline; the peer knows the deadline, and "
                            "never starts the call after it"
                          : "it could not be sent before its deadline, and never runs";
    case Guarantee::cancellation:
      return may_have_run ? "it was cancelled, but may have run"
                          : "it was cancelled, and never runs";
    case Guarantee::bounded_memory:
      return "this node had no room for it, and did not send it";
    case Guarantee::dead_peer:
      return may_have_run ? "the peer is considered dead; the call was sent, and may have run"
                          : "the peer is considered dead; the call was not sent, and never runs";
    case Guarantee::overload:
      return may_have_run ? "the callee started it, and its handler failed with Overloaded"
                          : "the callee had no room for it, and did not run it";
    case Guarantee::shutdown:
      return may_have_run ? "a node was shut down while the call was in flight"
                          : "a node is shutting down, and did not run it";
    case Guarantee::none:
    case Guarantee::reconnect:
    case Guarantee::membership:
    case Guarantee::version_skew:
      break;
  }
  return may_have_run ? "it may have run" : "it never ran";
}

// Says which node has shut down, if that is known. A call that was not sent was refused by its own
// node. One that was sent, and surely never ran, was refused by the callee. Between two attempts it
// may be either.
std::string_view advice_of_shut_down(const Error& error, const CallDiagnostics* diagnostics) {
  if (diagnostics != nullptr && !diagnostics->left) return "make a new node";
  if (diagnostics != nullptr && !error.may_have_run() && diagnostics->attempts <= 1) {
    return "call another node, or call again after it was restarted";
  }
  return "call another node, or call again after a restart; if your own node has ended, make a new "
         "one";
}

std::string_view advice_of(const Error& error) {
  const CallDiagnostics* const diagnostics = error.diagnostics();
  switch (error.code()) {
    case ErrorCode::remote_error:
      return "handle it like an exception of a local function; the message says what was thrown, "
             "and where";
    case ErrorCode::timed_out:
      if (diagnostics == nullptr) return "wait longer, or find out why it takes so long";
      if (!error.may_have_run())
        return "raise the timeout, or find out why the call could not be sent";
      return "raise the timeout, or find out why the callee is slow; repeat only idempotent calls";
    case ErrorCode::not_sent:
      return "call again, or call another node; if the call was to create an object, create a new "
             "one; wait_for_peer() waits until a lost peer is back";
    case ErrorCode::unknown:
      return "ask the peer whether it ran, or repeat it if it is idempotent";
    case ErrorCode::peer_lost:
      return "continue with the other peers; repeat only idempotent calls";
    case ErrorCode::broken_promise:
      return "find the handler that dropped its promise";
    case ErrorCode::overloaded:
      if (diagnostics != nullptr && diagnostics->guarantee == Guarantee::bounded_memory) {
        return "wait with wait_for_credit(), or raise NodeOptions::limits.max_outstanding_bytes";
      }
      return "call again later (Overloaded::retry_after()), or raise the limit";
    case ErrorCode::cancelled:
      return "nothing: it was cancelled on request, or the call that it was part of has ended";
    case ErrorCode::not_found:
      if (diagnostics == nullptr) {
        return "expose it, correct the name, or wait for the peer (wait_for_peer())";
      }
      if (!diagnostics->left) return "wait for the peer (wait_for_peer()), or correct its name";
      return "expose it, or correct the name";
    case ErrorCode::bad_signature:
      return "build caller and callee from the same declaration";
    case ErrorCode::bad_message:
      return "send a message that the peer accepts";
    case ErrorCode::shut_down:
      return advice_of_shut_down(error, diagnostics);
    case ErrorCode::owner_lost:
    case ErrorCode::rref_expired:
      return "create a new object, from a saved state if you have one";
    case ErrorCode::permission_denied:
      return "call from a node that may, or change the rule at the callee";
    case ErrorCode::invalid_argument:
    case ErrorCode::join_failed:
      break;
  }
  return "see the message";
}

// "1.250 s"
std::string seconds_of(Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  const auto size = milliseconds < 0 ? -milliseconds : milliseconds;
  const std::string fraction = std::to_string(size % 1000);
  return (milliseconds < 0 ? "-" : "") + std::to_string(size / 1000) + '.' +
         std::string(3 - fraction.size(), '0') + fraction + " s";
}

// "     1.250 s  ": when, since the call.
std::string at(TimePoint when, const CallDiagnostics& diagnostics) {
  constexpr std::size_t kWidth = 12;
  const std::string seconds = seconds_of(when - diagnostics.called_at);
  return std::string(seconds.size() < kWidth ? kWidth - seconds.size() : 0, ' ') + seconds + "  ";
}

// Returns "; attempt 3 of 6, 1.234 s after the first one", for a call that may be tried again.
std::string attempt_of(const CallDiagnostics& diagnostics) {
  if (diagnostics.attempts <= 1) return "";
  return "; attempt " + std::to_string(diagnostics.attempt) + " of " +
         std::to_string(diagnostics.attempts) +
         (diagnostics.attempt == 1
              ? ""
              : ", " + seconds_of(diagnostics.called_at - diagnostics.first_called_at) +
                    " after the first");
}

std::string words_of(const ConnectionEvent& event) {
  constexpr std::size_t kMostWhy = 1024;  // it may be a peer's, and of any length
  const std::string why = event.why.empty() ? "" : ": " + escaped(event.why, kMostWhy);
  const std::string count = std::to_string(event.count);
  switch (event.kind) {
    case Kind::connected:
      return "connected";
    case Kind::broke:
      return "the connection broke" + why;
    case Kind::failed:
      return event.count == 1 ? "an attempt to connect failed" + why
                              : count + " attempts to connect had failed, the last one" + why;
    case Kind::resumed:
      return "reconnected" + (event.count == 0   ? ""
                              : event.count == 1 ? ", 1 frame was resent"
                                                 : ", " + count + " frames were resent");
    case Kind::silent:
      return "nothing was heard from the peer after this";
  }
  return "something happened" + why;
}

struct Line {
  TimePoint at;
  std::string text;
};

// Lists the events during the call, and the earlier ones that left it without a working connection.
std::vector<Line> lines_of(const CallDiagnostics& diagnostics) {
  const bool left_at_once = diagnostics.left_at == diagnostics.called_at;
  const bool has_time_out = diagnostics.deadline != TimePoint::max();
  std::vector<Line> lines{{diagnostics.called_at,
                           std::string(left_at_once ? "called, and sent at once" : "called") +
                               (has_time_out ? "; its timeout is " + text_of(diagnostics.deadline -
                                                                             diagnostics.called_at)
                                             : "") +
                               attempt_of(diagnostics)}};
  if (diagnostics.events) {
    for (const ConnectionEvent& event : *diagnostics.events) {
      const bool before = event.at < diagnostics.called_at;
      if (before && (event.kind == Kind::connected || event.kind == Kind::resumed)) {
        lines.resize(1);
      } else {
        lines.push_back({event.at, words_of(event)});
      }
    }
  }
  if (diagnostics.left_at && !left_at_once) lines.push_back({*diagnostics.left_at, "sent"});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.at < b.at; });
  return lines;
}

std::string way_of(const Error& error, const CallDiagnostics& diagnostics) {
  std::string text;
  for (const Line& line : lines_of(diagnostics))
    text += at(line.at, diagnostics) + line.text + '\n';
  const std::string left = !diagnostics.left      ? "and had not been sent"
                           : !diagnostics.left_at ? "and had been sent once there was room"
                                                  : "";
  text += at(diagnostics.ended_at, diagnostics) + "ended" + (left.empty() ? "" : ", " + left) +
          ": " + error.what() + '\n';
  return text;
}

}  // namespace

std::string explain(const Error& error) {
  std::string text(to_string(error.code()));
  const CallDiagnostics* const diagnostics = error.diagnostics();
  if (diagnostics == nullptr) {
    text += ": " + std::string(error.what()) + '\n';
  } else {
    text += ": the call of '" + diagnostics->function + "' on " + diagnostics->peer +
            (error.may_have_run() ? ", which may have run\n" : ", which never ran\n") +
            way_of(error, *diagnostics);
    if (diagnostics->guarantee != Guarantee::none) {
      text += "Promise " + std::to_string(static_cast<int>(diagnostics->guarantee)) + ", " +
              std::string(title_of(diagnostics->guarantee)) + ": " +
              std::string(meaning_of(diagnostics->guarantee, error)) + ".\n";
    }
  }
  return text + "What to do: " + std::string(advice_of(error)) + ".";
}

std::string explain(const std::exception_ptr& error) {
  if (!error) return "There was no error.";
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return explain(known);
  } catch (...) {
    return type_name(error) + ": " + describe(error);
  }
}

}  // namespace batchrpc
