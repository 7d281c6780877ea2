#include <sys/resource.h>
#include <unistd.h>

#include <batchrpc/base/error.hpp>
#include <batchrpc/env/lanes.hpp>
#include <batchrpc/future/promise.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/sanitizers.hpp"

namespace batchrpc {
namespace lanes_test {

using namespace std::chrono_literals;

class Recorded final : public LaneTask {
 public:
  Recorded(int number, std::vector<std::vector<int>>& order, std::mutex& mutex,
           std::size_t steps = 1)
      : number_(number), order_(order), mutex_(mutex), steps_(steps) {}
  [[nodiscard]] std::size_t steps() const noexcept override { return steps_; }

  void run(std::size_t lane) noexcept override {
    const std::lock_guard lock(mutex_);
    order_[lane].push_back(number_);
    ++shares_;
  }
  void done() noexcept override {
    shares_when_done_ = shares_;
    done_.set_value();
  }
  Future<void> when_done() { return done_.get_future(); }
  [[nodiscard]] int shares_when_done() const { return shares_when_done_; }

 private:
  const int number_;
  std::vector<std::vector<int>>& order_;
  std::mutex& mutex_;
  const std::size_t steps_;
  int shares_ = 0;
  int shares_when_done_ = 0;
  Promise<void> done_;
};

TEST_CASE("each lane runs its shares in the order of the tasks, and a task is done after its last",
          "[threads]") {
  constexpr std::size_t kLanes = 3;
  constexpr int kTasks = 200;
  std::vector<std::vector<int>> order(kLanes);
  std::mutex mutex;
  const auto lanes = thread_lanes(kLanes);
  CHECK(lanes->count() == 3);
  std::vector<std::shared_ptr<Recorded>> tasks;
  std::vector<Future<void>> done;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(std::make_shared<Recorded>(i, order, mutex));
    done.push_back(tasks.back()->when_done());
    lanes->run(tasks.back());
  }
  for (Future<void>& future : done)
    std::move(future).get();
  std::vector<int> expected(kTasks);
  for (int i = 0; i < kTasks; ++i)
    expected[static_cast<std::size_t>(i)] = i;
  for (const std::vector<int>& of_lane : order)
    CHECK(of_lane == expected);
  for (const auto& task : tasks)
    CHECK(task->shares_when_done() == 3);
}

TEST_CASE("lanes that end drop what they have not begun, which breaks its promises", "[threads]") {
  std::vector<std::vector<int>> order(1);
  std::mutex mutex;
  // Its share lasts until the lanes take nothing any more.
  class Lasting final : public LaneTask {
   public:
    Lasting(Lanes& lanes, std::vector<std::vector<int>>& order, std::mutex& mutex)
        : lanes_(lanes), order_(order), mutex_(mutex) {}
    void run(std::size_t /*lane*/) noexcept override {
      for (bool taken = true; taken; std::this_thread::yield()) {
        auto other = std::make_shared<Recorded>(1, order_, mutex_);
        const Future<void> dropped = other->when_done();
        lanes_.run(std::move(other));
        taken = !dropped.ready();
      }
    }
    void done() noexcept override {}

   private:
    Lanes& lanes_;
    std::vector<std::vector<int>>& order_;
    std::mutex& mutex_;
  };
  auto lanes = thread_lanes(1);
  lanes->run(std::make_shared<Lasting>(*lanes, order, mutex));
  auto waiting = std::make_shared<Recorded>(0, order, mutex);
  Future<void> dropped = waiting->when_done();
  lanes->run(std::exchange(waiting, nullptr));
  lanes.reset();
  CHECK_THROWS_AS(std::move(dropped).get(), BrokenPromise);
  CHECK(order[0].empty());
}

#if !BATCHRPC_TEST_ASAN && !BATCHRPC_TEST_TSAN  // which map what they like
// While it is there, the process can have so many bytes of addresses more, and no others.
class FewAddresses {
 public:
  explicit FewAddresses(rlim_t more) {
    REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit few = before_;
    few.rlim_cur = pages * static_cast<rlim_t>(::getpagesize()) + more;
    REQUIRE(::setrlimit(RLIMIT_AS, &few) == 0);
  }
  ~FewAddresses() { ::setrlimit(RLIMIT_AS, &before_); }
  FewAddresses(const FewAddresses&) = delete;
  FewAddresses& operator=(const FewAddresses&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("lanes that cannot have all their threads are refused, and those that began end",
          "[threads]") {
  for (int i = 0; i < 10; ++i) {
    const FewAddresses few(rlim_t{64} << 20);  // of eight threads or so
    CHECK_THROWS_AS(thread_lanes(1000), Overloaded);
  }
  CHECK(thread_lanes(2)->count() == 2);
}
#endif

TEST_CASE("timed lanes take virtual time, each its own, one task after the other") {
  SimulatedWorld world;
  std::vector<std::vector<int>> order(2);
  std::mutex mutex;
  const auto lanes = timed_lanes(2, world.loop(), [](std::size_t lane) {
    return lane == 0 ? Duration(10ms) : Duration(30ms);
  });
  auto first = std::make_shared<Recorded>(0, order, mutex);
  auto second = std::make_shared<Recorded>(1, order, mutex);
  Future<void> first_done = first->when_done();
  Future<void> second_done = second->when_done();
  lanes->run(first);
  lanes->run(second);
  CHECK(world.run_until([&] { return first_done.ready(); }));
  CHECK(world.time() == 30ms);
  CHECK(world.run_until([&] { return second_done.ready(); }));
  CHECK(world.time() == 60ms);
  CHECK(order == std::vector<std::vector<int>>{{0, 1}, {0, 1}});
}

TEST_CASE("a timed share takes effect when it begins, and the time of its steps") {
  SimulatedWorld world;
  std::vector<std::vector<int>> order(1);
  std::mutex mutex;
  const auto lanes =
      timed_lanes(1, world.loop(), [](std::size_t /*lane*/) { return Duration(10ms); });
  std::vector<std::shared_ptr<Recorded>> tasks;
  std::vector<Future<void>> done;
  for (const std::size_t steps : {std::size_t{3}, std::size_t{0}, std::size_t{1}}) {
    tasks.push_back(
        std::make_shared<Recorded>(static_cast<int>(tasks.size()), order, mutex, steps));
    done.push_back(tasks.back()->when_done());
    lanes->run(tasks.back());
  }
  world.run_for(29ms);
  CHECK(order[0] == std::vector<int>{0});
  CHECK_FALSE(done[0].ready());
  CHECK(world.run_until([&] { return done[1].ready(); }));
  CHECK(world.time() == 30ms);
  CHECK(order[0] == std::vector<int>{0, 1, 2});
  CHECK(world.run_until([&] { return done[2].ready(); }));
  CHECK(world.time() == 40ms);
}

TEST_CASE("no lanes are refused") {
  SimulatedWorld world;
  CHECK_THROWS_AS(thread_lanes(0), InvalidArgument);
  CHECK_THROWS_AS(timed_lanes(0, world.loop(), nullptr), InvalidArgument);
}

}  // namespace lanes_test
}  // namespace batchrpc
