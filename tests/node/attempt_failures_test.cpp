#include "node/attempt_failures.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>

#include "batchrpc/base/call_diagnostics.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "node/retry_schedule.hpp"

namespace batchrpc {
namespace attempt_failures_test {

using namespace std::chrono_literals;

template <class E>
std::exception_ptr fail_with(AttemptFailures& failures, const E& error, const std::string& note) {
  const auto thrown = std::make_exception_ptr(error);
  failures.add(thrown, error);
  return failures.final_error(thrown, error, note);
}

bool may_have_run(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.may_have_run();
  }
}

TEST_CASE("an only failure is the error of its call, with a note why there was no other attempt") {
  AttemptFailures failures;
  const NotSent not_sent("no connection");
  CHECK(describe(fail_with(failures, not_sent, {})) == describe(std::make_exception_ptr(not_sent)));
  const auto noted = fail_with(failures, not_sent, "that was attempt 1 of 1");
  CHECK_THAT(describe(noted), Catch::Contains("no connection; that was attempt 1 of 1"));
  CHECK_FALSE(may_have_run(noted));
  CHECK_FALSE(failures.may_have_run());
}

TEST_CASE("the error of a call does not hide an earlier attempt that may have run") {
  AttemptFailures failures;
  (void)fail_with(failures, PeerLost("the first was lost", true), {});
  CHECK(failures.may_have_run());
  const auto overloaded = fail_with(failures, Overloaded("no room", 1s), {});
  CHECK(code_of(overloaded) == ErrorCode::overloaded);
  CHECK(may_have_run(overloaded));
  CHECK_THAT(describe(overloaded), Catch::Contains("an earlier attempt may have run") &&
                                       Catch::Contains("the first was lost"));
  // NotSent would promise that nothing ran, so the call ends with the earlier error.
  const auto not_sent = fail_with(failures, NotSent("no connection"), {});
  CHECK(code_of(not_sent) == ErrorCode::peer_lost);
  CHECK(may_have_run(not_sent));
  CHECK_THAT(describe(not_sent), Catch::Contains("no connection"));
}

TEST_CASE("a call that ends before its first attempt has diagnostics of its own") {
  const TimePoint called_at{5s};
  const RetrySchedule schedule({.attempts = 3}, 10s, called_at);
  for (const bool node_is_gone : {false, true}) {
    AttemptFailures failures;
    failures.end_between_attempts("b", "add", schedule,
                                  node_is_gone ? std::nullopt : std::optional(called_at + 2s));
    const auto error = std::make_exception_ptr(Cancelled("cancelled", false));
    failures.report(error, schedule);
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      REQUIRE(known.diagnostics() != nullptr);
      const CallDiagnostics& diagnostics = *known.diagnostics();
      CHECK(diagnostics.peer == "b");
      CHECK(diagnostics.function == "add");
      CHECK(diagnostics.attempt == 1);
      CHECK(diagnostics.attempts == 3);
      CHECK(diagnostics.called_at == called_at);
      CHECK(diagnostics.ended_at == called_at + (node_is_gone ? 0s : 2s));
      CHECK(diagnostics.guarantee == Guarantee::cancellation);
    }
  }
}

}  // namespace attempt_failures_test
}  // namespace batchrpc
