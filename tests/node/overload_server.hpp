#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc::test {

constexpr int kProcessors = 4;
constexpr Duration kWork = std::chrono::milliseconds(40);  // of a call, in the mean
constexpr double kCapacity = 100;                          // calls a second
constexpr Duration kTimeout = std::chrono::milliseconds(800);

/// Processors in virtual time: each does one piece of work at a time, those beyond wait in order.
class Processors {
 public:
  explicit Processors(std::shared_ptr<VirtualLoop> loop) : loop_(std::move(loop)) {}

  Future<int> work(Duration time) {
    if (const CallContext* call = CallContext::current()) {
      if (call->time_left().value_or(kTimeout) == Duration::zero()) ++expired;
    }
    Job job{.time = time, .done = {}};
    auto done = job.done.get_future();
    waiting_.push_back(std::move(job));
    begin();
    return done;
  }

  int expired = 0;  ///< work that began when its caller had given up
  int most = 0;     ///< pieces of work that waited or were done, at once

 private:
  struct Job {
    Duration time;
    Promise<int> done;
  };

  void begin() {
    most = std::max(most, busy_ + static_cast<int>(waiting_.size()));
    while (busy_ < kProcessors && !waiting_.empty()) {
      Job job = std::move(waiting_.front());
      waiting_.pop_front();
      ++busy_;
      loop_->schedule(loop_->now() + job.time, [this, done = std::move(job.done)]() mutable {
        --busy_;
        begin();
        done.set_value(1);
      });
    }
  }

  const std::shared_ptr<VirtualLoop> loop_;
  std::deque<Job> waiting_;
  int busy_ = 0;
};

/// What became of calls.
struct Tally {
  int offered = 0;
  int answered = 0;
  int refused = 0;
  int timed_out = 0;
  int other = 0;
  Duration slowest_refusal{};
  std::vector<std::chrono::nanoseconds> pauses;  // retry_after of those refused
};

/// A server with processors, and clients whose calls come whether others were answered or not.
struct Server {
  explicit Server(const CallLimits& limits, std::uint64_t seed = 7) : world(seed), random(seed) {
    world.network->set_link({.latency = std::chrono::milliseconds(1)});
    NodeOptions options = world.options("server");
    options.limits.calls = limits;
    node.emplace(std::move(options));
    node->expose("work", [this] { return processors.work(time_of_work()); });
  }

  Duration time_of_work() {
    if (!random_work) return kWork;
    std::exponential_distribution<double> factor(1.0);
    return std::chrono::duration_cast<Duration>(kWork * factor(random));
  }

  void call(const Node& client, Tally& tally, Duration timeout) {
    ++tally.offered;
    client.peer("server")
        .with({.timeout = timeout})
        .call<int()>("work")
        .then([this, &tally, begin = world.time()](const Result<int>& result) {
          if (result) {
            ++tally.answered;
          } else if (result.code() == ErrorCode::overloaded) {
            ++tally.refused;
            tally.slowest_refusal = std::max(tally.slowest_refusal, world.time() - begin);
            try {
              std::rethrow_exception(result.error());
            } catch (const Overloaded& error) {
              tally.pauses.push_back(error.retry_after());
              if (error.may_have_run()) ++tally.other;
            }
          } else if (result.code() == ErrorCode::timed_out) {
            ++tally.timed_out;
          } else {
            ++tally.other;
          }
        });
  }

  /// Calls of `client` for a while, so many a second; the time-out of each is drawn.
  void load(const Node& client, Tally& tally, double rate, Duration time,
            std::vector<Duration> timeouts = {kTimeout}) {
    const Duration end = world.time() + time;
    auto next = std::make_shared<std::function<void()>>();
    *next = [=, this, &client, &tally, weak = std::weak_ptr(next)] {
      if (world.time() >= end) return;
      call(client, tally, timeouts[random() % timeouts.size()]);
      std::exponential_distribution<double> gap(rate);
      world.loop->schedule(world.loop->now() + std::chrono::duration_cast<Duration>(
                                                   std::chrono::duration<double>(gap(random))),
                           [next = weak.lock()] { (*next)(); });
    };
    (*next)();
  }

  VirtualWorld world;
  std::mt19937_64 random;
  bool random_work = false;
  Processors processors{world.loop};
  std::optional<Node> node;
};

}  // namespace batchrpc::test
