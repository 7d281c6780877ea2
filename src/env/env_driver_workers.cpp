#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "env/env_driver.hpp"

namespace batchrpc {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 20ms;
constexpr Duration kLongestPause = 1s;
// How long a worker may take to make its environments, where nobody waits for it.
constexpr Duration kOpening = 60s;

// Whether it is of no use to ask again.
bool is_refusal(ErrorCode code) {
  return code == ErrorCode::invalid_argument || code == ErrorCode::remote_error ||
         code == ErrorCode::bad_signature || code == ErrorCode::bad_message;
}

}  // namespace

void VectorEnv::State::open_all() {
  const TimePoint give_up = after(loop_->now(), options_.open_timeout);
  {
    const std::lock_guard lock(mutex_);
    for (Worker& worker : workers_)
      worker.opening = true;
  }
  for (std::size_t w = 0; w < worker_count(); ++w)
    open(w, give_up, kFirstPause);
  std::unique_lock lock(mutex_);
  const auto refused = [](const Worker& worker) { return worker.refusal != nullptr; };
  const auto opening = [](const Worker& worker) { return worker.opening; };
  wait_until(lock, [&] {
    return std::ranges::any_of(workers_, refused) || std::ranges::none_of(workers_, opening);
  });
  const auto at = std::ranges::find_if(workers_, refused);
  if (at != workers_.end()) std::rethrow_exception(at->refusal);
}

// One that is `opening`. Ends in opened(), at once or later.
void VectorEnv::State::open(std::size_t w, TimePoint give_up, Duration pause) {
  const auto answered = [self = weak_from_this(), w, give_up,
                         pause](Result<env::OpenReply> result) {
    if (const auto state = self.lock()) state->opened(w, give_up, pause, std::move(result));
  };
  try {
    with_node([&](const Node& node) {
      CallOptions options;
      options.timeout = std::max<Duration>(give_up - loop_->now(), 1ms);
      options.detached = true;
      const env::OpenRequest request{.buffers = static_cast<std::uint32_t>(options_.buffers),
                                     .envs = static_cast<std::uint32_t>(options_.envs_per_worker),
                                     .autoreset = options_.autoreset};
      static_cast<void>(node.call_with<env::OpenFunction>(options, options_.workers[w],
                                                          env::open_name(options_.service), request)
                            .then(answered));
    });
  } catch (...) {
    answered(std::current_exception());
  }
}

void VectorEnv::State::opened(std::size_t w, TimePoint give_up, Duration pause,
                              Result<env::OpenReply> result) {
  std::unique_lock lock(mutex_);
  Worker& worker = workers_[w];
  const auto refuse = [&](std::exception_ptr why) {
    worker.told.last_loss = describe(why);
    worker.refusal = std::move(why);
    worker.opening = false;
    wake(lock);
  };
  if (!result.has_value()) {
    if (is_refusal(result.code()) || result.code() == ErrorCode::shut_down) {
      return refuse(result.error());
    }
    lock.unlock();
    return open_later(w, give_up, pause, result.message());
  }
  try {
    require_usable(result.value().spec);
    const std::size_t row =
        result.value().spec.observation.bytes() + result.value().spec.action.bytes();
    if (row > env::kMostReplyBytes / options_.envs_per_worker) {
      throw InvalidArgument("VectorEnv: " + std::to_string(options_.envs_per_worker) +
                            " environments of worker " + worker.told.name + " (" +
                            to_string(result.value().spec) + ") are more than a message takes");
    }
  } catch (...) {
    return refuse(std::current_exception());
  }
  const env::OpenReply& reply = result.value();
  if (spec_ == nullptr) {
    spec_ = std::make_shared<const EnvSpec>(reply.spec);
    extras_ = reply.extras;
    observation_bytes_ = spec_->observation.bytes();
    action_bytes_ = spec_->action.bytes();
  } else if (*spec_ != reply.spec || extras_ != reply.extras) {
    return refuse(std::make_exception_ptr(
        InvalidArgument("VectorEnv: the environments of worker " + worker.told.name + " (" +
                        to_string(reply.spec) + ", and " + std::to_string(reply.extras) +
                        " numbers of its policy) differ from those of others (" +
                        to_string(*spec_) + ", and " + std::to_string(extras_) + ")")));
  }
  worker.session = reply.session;
  worker.opening = false;
  worker.told.live = true;
  const bool again = worker.told.losses > 0;
  for (std::size_t b = 0; b < options_.buffers; ++b)
    groups_[b * worker_count() + w].phase = Phase::held;
  if (!again) return wake(lock);
  lock.unlock();
  begin_again(w);
}

void VectorEnv::State::open_later(std::size_t w, TimePoint give_up, Duration pause,
                                  const std::string& why) {
  const TimePoint now = loop_->now();
  if (now >= give_up) {
    std::unique_lock lock(mutex_);
    Worker& worker = workers_[w];
    worker.opening = false;
    worker.told.last_loss = why;
    worker.refusal = std::make_exception_ptr(
        TimedOut("VectorEnv: worker " + worker.told.name +
                 " could not be opened in time; is its EnvWorker there, with the service " +
                 options_.service + "? The last try: " + why));
    return wake(lock);
  }
  loop_->schedule(std::min(after(now, pause), give_up),
                  [self = weak_from_this(), w, give_up, pause] {
                    const auto state = self.lock();
                    if (state == nullptr) return;
                    state->open(w, give_up, std::min<Duration>(2 * pause, kLongestPause));
                  });
}

// A worker that was lost is there again: its policy gets the weights, and its environments begin.
void VectorEnv::State::begin_again(std::size_t w) {
  std::vector<Order> orders;
  std::uint64_t seed = 0;
  Bytes weights;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    // Other episodes than those that are known.
    seed = seed_ + workers_[w].told.losses * size();
    if (has_weights_) {
      weights = weights_;
      version = weights_version_;
    }
    for (std::size_t b = 0; b < options_.buffers; ++b)
      orders.push_back(order(b * worker_count() + w, 1));
  }
  if (!weights.empty()) {
    try {
      with_node([&](const Node& node) {
        node.notify<env::PolicyFunction>(options_.workers[w], env::policy_name(options_.service),
                                         weights, version);
      });
    } catch (...) {  // then the resets fail, too
    }
  }
  for (const Order& order : orders)
    send_reset(order, seed + order.group * options_.envs_per_worker);
}

// What it had is gone. It is opened again when it can be, unless it has failed by itself.
void VectorEnv::State::lose(std::size_t w, std::uint64_t session, const std::exception_ptr& error) {
  const ErrorCode code = Result<void>(error).code();
  const bool again = !is_refusal(code) && code != ErrorCode::shut_down;
  {
    std::unique_lock lock(mutex_);
    Worker& worker = workers_[w];
    if (!worker.told.live || worker.session != session) return;
    worker.told.live = false;
    worker.told.last_loss = describe(error);
    ++worker.told.losses;
    worker.opening = again;
    for (std::size_t b = 0; b < options_.buffers; ++b) {
      Group& group = groups_[b * worker_count() + w];
      group.phase = Phase::lost;
      ++group.ticket;
      group.place = {};
      group.reply = {};
    }
    std::erase_if(arrived_, [&](std::size_t g) { return worker_of(g) == w; });
    wake(lock);
  }
  if (again) open(w, after(loop_->now(), kOpening), kFirstPause);
}

void VectorEnv::State::wait_until(std::unique_lock<std::mutex>& lock, std::function<bool()> done) {
  while (!done()) {
    Promise<void> promise;
    const Future<void> ready = promise.get_future();
    waiter_ = std::move(promise);
    waited_for_ = done;
    lock.unlock();
    ready.wait();
    lock.lock();
  }
}

// Gives the lock up when somebody is woken.
void VectorEnv::State::wake(std::unique_lock<std::mutex>& lock) {
  if (!waiter_ || !waited_for_()) return;
  std::optional<Promise<void>> waiter = std::exchange(waiter_, std::nullopt);
  lock.unlock();
  waiter->set_value();
}

std::size_t VectorEnv::State::count(Phase phase) const noexcept {
  return static_cast<std::size_t>(std::ranges::count(groups_, phase, &Group::phase));
}

bool VectorEnv::State::any(std::size_t buffer, Phase phase) const noexcept {
  for (std::size_t w = 0; w < worker_count(); ++w) {
    if (groups_[buffer * worker_count() + w].phase == phase) return true;
  }
  return false;
}

bool VectorEnv::State::any_live() const noexcept {
  return std::ranges::any_of(workers_, [](const Worker& worker) { return worker.told.live; });
}

void VectorEnv::State::throw_nothing() const {
  std::string gone;
  for (const Worker& worker : workers_) {
    if (worker.told.live) {
      throw InvalidArgument("VectorEnv: nothing is under way: reset_async() or step_async() first");
    }
    gone += "; " + worker.told.name + ": " + worker.told.last_loss;
  }
  throw PeerLost("VectorEnv: all workers are lost" + gone);
}

}  // namespace batchrpc
