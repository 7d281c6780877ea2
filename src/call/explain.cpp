#include "batchrpc/call/explain.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

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
          return "an attempt has run, and threw, or may have run";
        }
        return may_have_run ? "it ran once, and threw"
                            : "it surely never ran: what was to make its object threw";
      }
      if (error.code() == ErrorCode::unknown) {
        return "the peer does not remember it; as it may have run, it is not sent again";
      }
      return may_have_run ? "it may have run, and is not sent again" : "it surely never ran";
    case Guarantee::deadline:
      return may_have_run ? "no answer came in time; the deadline went along, and if it had not "
                            "begun to run by then, it never will"
                          : "it could not be sent in time, and never runs";
    case Guarantee::cancellation:
      return may_have_run ? "it was told to end, but may have run"
                          : "it was taken back and never runs";
    case Guarantee::bounded_memory:
      return "there was no room for it here, and it was not sent";
    case Guarantee::dead_peer:
      return may_have_run ? "the peer counts as dead; it had left, and may have run"
                          : "the peer counts as dead; it was not sent, and never runs";
    case Guarantee::overload:
      return may_have_run ? "the callee had no room for what it did"
                          : "the callee had no room for it, and did not run it";
    case Guarantee::shutdown:
      return may_have_run ? "a node has shut down while it was under way"
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
    return "call another node, or again when it has been started again";
  }
  return "call another node, or again when it has been started again; make a new one where it was "
         "the own one that ended";
}

std::string_view advice_of(const Error& error) {
  const CallDiagnostics* const diagnostics = error.diagnostics();
  switch (error.code()) {
    case ErrorCode::remote_error:
      return "as for an exception of a local function: the text says what it was, and where";
    case ErrorCode::timed_out:
      if (diagnostics == nullptr) return "wait for longer, or see why it takes so long";
      if (!error.may_have_run()) return "raise the time-out, or see why the call could not leave";
      return "raise the time-out, or see why the callee is slow; repeat only what is idempotent";
    case ErrorCode::not_sent:
      return "call again, or another node; create another object where it was to make one; "
             "wait_for_peer() waits for a peer that is lost";
    case ErrorCode::unknown:
      return "ask the peer what it knows, or repeat what is idempotent";
    case ErrorCode::peer_lost:
      return "go on with the other peers; repeat only what is idempotent";
    case ErrorCode::broken_promise:
      return "look for the handler that did not answer";
    case ErrorCode::overloaded:
      if (diagnostics != nullptr && diagnostics->guarantee == Guarantee::bounded_memory) {
        return "wait with wait_for_credit(), or raise NodeOptions::max_outstanding_bytes";
      }
      return "call again after a while (Overloaded::retry_after()), or raise the limit";
    case ErrorCode::cancelled:
      return "nothing: somebody asked for it, or nobody waits any more for what it was part of";
    case ErrorCode::not_found:
      if (diagnostics == nullptr) {
        return "expose it, call it by its right name, or wait for the peer (wait_for_peer())";
      }
      if (!diagnostics->left)
        return "wait for the peer (wait_for_peer()), or call it by its right name";
      return "expose it, or call it by its right name";
    case ErrorCode::bad_signature:
      return "build caller and callee from one declaration";
    case ErrorCode::bad_message:
      return "send what the other side takes";
    case ErrorCode::shut_down:
      return advice_of_shut_down(error, diagnostics);
    case ErrorCode::owner_lost:
    case ErrorCode::rref_expired:
      return "create another object, from what was kept of it";
    case ErrorCode::invalid_argument:
    case ErrorCode::join_failed:
      break;
  }
  return "as the message says";
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
                    " after the first one");
}

std::string words_of(const ConnectionEvent& event) {
  const std::string why = event.why.empty() ? "" : ": " + event.why;
  const std::string count = std::to_string(event.count);
  switch (event.kind) {
    case Kind::connected:
      return "connected";
    case Kind::broke:
      return "the connection broke" + why;
    case Kind::failed:
      return event.count == 1 ? "a try to connect failed" + why
                              : count + " tries to connect had failed, the last one" + why;
    case Kind::resumed:
      return "connected again" + (event.count == 0   ? ""
                                  : event.count == 1 ? ", 1 frame was sent again"
                                                     : ", " + count + " frames were sent again");
    case Kind::silent:
      return "from here on nothing was heard";
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
                               (has_time_out ? "; its time-out is " + text_of(diagnostics.deadline -
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
                           : !diagnostics.left_at ? "and had been sent when there was room"
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
