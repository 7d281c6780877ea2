#include "batchrpc/transport/virtual_host.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::test {
namespace virtual_host_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a paused host's tasks wait, in order, while others run") {
  const auto loop = std::make_shared<VirtualLoop>();
  const auto host = VirtualHost::make(loop);
  const auto other = VirtualHost::make(loop);
  std::string ran;
  host->pause();
  CHECK(host->paused());
  host->post([&] { ran += 'a'; });
  host->schedule(host->now() + seconds(2), [&] { ran += 'c'; });
  host->schedule(host->now() + seconds(1), [&] { ran += 'b'; });
  other->post([&] { ran += 'x'; });
  loop->run_for(seconds(10));
  CHECK(ran == "x");
  host->resume();
  host->post([&] { ran += 'd'; });
  CHECK(ran == "x");
  loop->run_for(Duration::zero());
  CHECK(ran == "xabcd");
  host->post([&] { ran += 'e'; });
  loop->run_until_idle();
  CHECK(ran == "xabcde");
}

TEST_CASE("a host may pause again while it catches up") {
  const auto loop = std::make_shared<VirtualLoop>();
  const auto host = VirtualHost::make(loop);
  std::string ran;
  host->pause();
  host->post([&] {
    ran += 'a';
    host->pause();
  });
  host->post([&] { ran += 'b'; });
  loop->run_until_idle();
  host->resume();
  loop->run_until_idle();
  CHECK(ran == "a");
  host->resume();
  loop->run_until_idle();
  CHECK(ran == "ab");
}

TEST_CASE("what has become due at a paused host can be cancelled") {
  const auto loop = std::make_shared<VirtualLoop>();
  const auto host = VirtualHost::make(loop);
  bool ran = false;
  const TimerId timer = host->schedule(host->now() + seconds(1), [&] { ran = true; });
  const TimerId later = host->schedule(host->now() + seconds(100), [&] { ran = true; });
  host->pause();
  loop->run_for(seconds(10));
  CHECK(host->cancel(timer));
  CHECK_FALSE(host->cancel(timer));
  CHECK(host->cancel(later));
  host->resume();
  loop->run_until_idle();
  CHECK_FALSE(ran);
}

TEST_CASE("a host's clock may be ahead, and may gain or lose") {
  for (const double drift : {0.1, -0.1, 1e-5, -1e-5, 0.0}) {
    const auto loop = std::make_shared<VirtualLoop>();
    const auto host = VirtualHost::make(loop, {.offset = hours(5), .drift = drift});
    const TimePoint loop_start = loop->now();
    const TimePoint start = host->now();
    CHECK(start == loop_start + hours(5));
    for (const auto delay : {Duration(1), Duration(seconds(1)), Duration(hours(10))}) {
      TimePoint ran;
      const TimePoint when = host->now() + delay;
      host->schedule(when, [&] { ran = host->now(); });
      loop->run_until_idle(hours(100));
      CHECK(ran >= when);
      CHECK(ran <= when + Duration(2));
    }
    loop->run_for(hours(10));
    const std::chrono::duration<double> passed = loop->now() - loop_start;
    const std::chrono::duration<double> shown = host->now() - start;
    CHECK(shown.count() == Approx(passed.count() * (1 + drift)).epsilon(1e-9));
  }
  CHECK_THROWS_AS(VirtualHost::make(std::make_shared<VirtualLoop>(), {.drift = 2}),
                  InvalidArgument);
  CHECK_THROWS_AS(VirtualHost::make(std::make_shared<VirtualLoop>(), {.offset = -hours(2)}),
                  InvalidArgument);
}

TEST_CASE("who waits by a host drives all of them, until its own deadline") {
  const auto loop = std::make_shared<VirtualLoop>();
  const auto host = VirtualHost::make(loop, {.offset = -milliseconds(70'000), .drift = 0.25});
  const auto other = VirtualHost::make(loop);
  const WaitScope scope(host);
  Promise<int> promise;
  const Future<int> future = promise.get_future();
  other->schedule(other->now() + seconds(8), [&] { promise.set_value(1); });
  const TimePoint start = loop->now();
  CHECK_FALSE(future.wait_for(seconds(5)));
  CHECK(loop->now() - start >= seconds(4));
  CHECK(loop->now() - start < seconds(4) + milliseconds(1));
  CHECK(future.wait_for(seconds(6)));
  CHECK(loop->now() == start + seconds(8));
}

TEST_CASE("a host that is gone takes its tasks with it") {
  const auto loop = std::make_shared<VirtualLoop>();
  auto host = VirtualHost::make(loop);
  bool ran = false;
  host->post([&] { ran = true; });
  host.reset();
  loop->run_until_idle();
  CHECK_FALSE(ran);
}

}  // namespace virtual_host_test
}  // namespace batchrpc::test
