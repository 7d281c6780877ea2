#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/future/when_all.hpp"
#include "call/duration_text.hpp"
#include "env/env_driver.hpp"
#include "node/node_core.hpp"

// A worker is being opened, until it is live or refused; a live one that is lost is being opened
// again, unless it has failed by itself: that, and one that is refused, another process of its name
// may replace.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstReopenPause = 20ms;
constexpr Duration kLongestReopenPause = 1s;
constexpr const char* kUntilReplaced = "it is opened again when another process of its name joins";

std::string why_lost(const std::string& worker, const std::exception_ptr& error) {
  const std::string why = describe(error);
  return why.starts_with(worker + " ") ? why : worker + " is lost: " + why;
}

}  // namespace

// Whether it is of no use to ask again.
bool VectorEnv::State::is_final(const std::exception_ptr& error) const {
  switch (Result<void>(error).code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::remote_error:
    case ErrorCode::bad_signature:
    case ErrorCode::bad_message:
      return true;
    case ErrorCode::shut_down:  // of this node, or of one whose name another may take
      return core_->refusal() != nullptr;
    default:
      return false;
  }
}

void VectorEnv::State::open_all() {
  membership_ = core_->on_change([self = weak_from_this()](const PeerChange& change) {
    const auto state = self.lock();
    if (state == nullptr) return;
    if (change.kind == PeerChange::Kind::lost) state->peer_lost(change.peer, change.reason);
    if (change.kind == PeerChange::Kind::joined) state->peer_joined(change.peer);
  });
  {
    const std::lock_guard lock(mutex_);
    const TimePoint give_up = after(loop_->now(), options_.open_timeout);
    for (Worker& worker : workers_) {
      worker.told.opening = true;
      worker.give_up = give_up;
      worker.pause = kFirstReopenPause;
    }
  }
  for (std::size_t w = 0; w < worker_count(); ++w)
    open(w);
  std::unique_lock lock(mutex_);
  const auto refused = [](const Worker& worker) { return worker.refusal != nullptr; };
  const auto opening = [](const Worker& worker) { return worker.told.opening; };
  wait_until(lock, [&] {
    return std::ranges::any_of(workers_, refused) || std::ranges::none_of(workers_, opening);
  });
  const auto at = std::ranges::find_if(workers_, refused);
  if (at != workers_.end()) std::rethrow_exception(at->refusal);
}

void VectorEnv::State::close() noexcept {
  core_->forget_handler(membership_);
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

// One that is being opened. Ends in opened(), at once or later.
void VectorEnv::State::open(std::size_t w) {
  Duration timeout = options_.open_timeout;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const Duration left = workers_[w].give_up - loop_->now();
    timeout = std::max<Duration>(std::min(left, timeout), 1ms);
  }
  static_cast<void>(
      send_open(w, timeout).then([self = weak_from_this(), w](Result<env::OpenReply> result) {
        if (const auto state = self.lock()) state->opened(w, std::move(result));
      }));
}

void VectorEnv::State::open_later(std::unique_lock<std::mutex> lock, std::size_t w) {
  Worker& worker = workers_[w];
  const Duration pause = worker.pause;
  worker.pause = std::clamp<Duration>(2 * pause, kFirstReopenPause, kLongestReopenPause);
  const TimePoint at = std::min(after(loop_->now(), pause), worker.give_up);
  lock.unlock();
  if (pause == Duration::zero()) return open(w);
  loop_->schedule(at, [self = weak_from_this(), w] {
    if (const auto state = self.lock()) state->open(w);
  });
}

void VectorEnv::State::opened(std::size_t w, Result<env::OpenReply> result) {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  if (!result.has_value()) return not_opened(std::move(lock), w, result.error());
  Worker& worker = workers_[w];
  try {
    accept(worker, result.value());
  } catch (...) {
    return refuse(std::move(lock), w, std::current_exception());
  }
  if (weights_ == nullptr) return begin(std::move(lock), w);
  const env::SessionId session = worker.session;
  std::shared_ptr<const Weights> weights = weights_;
  lock.unlock();
  give_weights(w, session, std::move(weights));
}

// Throws InvalidArgument unless its environments are as all others.
void VectorEnv::State::accept(Worker& worker, const env::OpenReply& reply) {
  worker.incarnation = reply.incarnation;
  require_usable(reply.spec);
  const env::StepShape shape{.envs = options_.envs_per_worker,
                             .observation_bytes = reply.spec.observation.bytes(),
                             .action_bytes = reply.spec.action.bytes(),
                             .extras = reply.extras.value_or(0)};
  if (spec_ == nullptr) {
    const std::size_t most = env::most_steps(shape, env::limits_of(core_->options()));
    if (most == 0) {
      throw InvalidArgument("VectorEnv: " + std::to_string(options_.envs_per_worker) +
                            " environments of worker " + worker.told.name + " (" +
                            to_string(reply.spec) + ") are more than a message takes");
    }
    spec_ = std::make_shared<const EnvSpec>(reply.spec);
    shape_ = shape;
    extras_ = reply.extras;
    most_steps_ = most;
    described_by_ = worker.told.name;
  } else if (*spec_ != reply.spec || extras_ != reply.extras) {
    const auto described = [](const EnvSpec& spec, std::optional<std::uint32_t> extras) {
      return " (" + to_string(spec) + ", and " +
             (extras ? std::to_string(*extras) + " numbers of its policy" : "no policy") + ")";
    };
    throw InvalidArgument(
        "VectorEnv: the environments of worker " + worker.told.name +
        described(reply.spec, reply.extras) + " differ from those of " +
        (described_by_ == worker.told.name ? "the process before" : described_by_) +
        described(*spec_, extras_));
  }
  worker.session = reply.session;
}

// Before its environments begin; and those that were pushed meanwhile, too.
void VectorEnv::State::give_weights(std::size_t w, const env::SessionId& session,
                                    std::shared_ptr<const Weights> weights) {
  Future<void> taken = send_weights(w, session, *weights, options_.open_timeout);
  static_cast<void>(std::move(taken).then(
      [self = weak_from_this(), w, session, weights = std::move(weights)](Result<void> result) {
        const auto state = self.lock();
        if (state == nullptr) return;
        std::unique_lock lock(state->mutex_);
        if (state->closed_) return;
        if (!result.has_value()) return state->not_opened(std::move(lock), w, result.error());
        if (state->weights_ == weights) return state->begin(std::move(lock), w);
        std::shared_ptr<const Weights> newer = state->weights_;
        lock.unlock();
        state->give_weights(w, session, std::move(newer));
      }));
}

// It is live; one that was lost begins with other episodes than those that are known.
void VectorEnv::State::begin(std::unique_lock<std::mutex> lock, std::size_t w) {
  Worker& worker = workers_[w];
  worker.told.opening = false;
  worker.told.live = true;
  worker.give_up = TimePoint::max();
  worker.overdue = TimePoint::max();
  worker.epoch = ++epochs_;
  const std::uint64_t seed = seed_ + worker.told.losses * size();
  std::vector<Order> orders;
  for (std::size_t b = 0; b < options_.buffers; ++b) {
    const std::size_t g = b * worker_count() + w;
    groups_[g].phase = Phase::held;
    if (worker.told.losses > 0) orders.push_back(order(g, {}));
  }
  wake(lock);
  if (lock.owns_lock()) lock.unlock();
  for (const Order& order : orders)
    send_reset(order, seed + order.group * options_.envs_per_worker);
}

void VectorEnv::State::not_opened(std::unique_lock<std::mutex> lock, std::size_t w,
                                  const std::exception_ptr& error) {
  if (is_final(error)) return refuse(std::move(lock), w, error);
  Worker& worker = workers_[w];
  if (loop_->now() < worker.give_up) {
    std::string told;
    const bool may_be_asked_for_ever = worker.epoch != 0;
    if (may_be_asked_for_ever && loop_->now() >= worker.overdue) {
      worker.overdue = TimePoint::max();
      worker.told.last_loss = worker.told.name + " could not be opened again within " +
                              "VectorEnvOptions::open_timeout (" + text_of(options_.open_timeout) +
                              "): " + describe(error);
      told = worker.told.last_loss + "; it is asked again";
    }
    open_later(std::move(lock), w);
    if (!told.empty()) core_->log().warning(told);
    return;
  }
  refuse(std::move(lock), w,
         std::make_exception_ptr(TimedOut(
             "VectorEnv: worker " + worker.told.name +
             " could not be opened within VectorEnvOptions::open_timeout (" +
             text_of(options_.open_timeout) + "); is its EnvWorker there, with the service " +
             options_.service + "? The last try: " + describe(error))));
}

void VectorEnv::State::refuse(std::unique_lock<std::mutex> lock, std::size_t w,
                              std::exception_ptr why) {
  Worker& worker = workers_[w];
  worker.told.last_loss = why_lost(worker.told.name, why);
  worker.told.opening = false;
  ++worker.told.refusals;
  worker.refusal = std::move(why);
  const bool was_live = worker.epoch != 0;
  const std::string told = worker.told.last_loss + "; " + kUntilReplaced;
  wake(lock);
  if (lock.owns_lock()) lock.unlock();
  if (was_live) core_->log().warning(told);
}

// One that is live: what it had is gone.
void VectorEnv::State::lose(std::unique_lock<std::mutex> lock, std::size_t w,
                            const std::exception_ptr& error) {
  Worker& worker = workers_[w];
  worker.told.live = false;
  worker.told.opening = !is_final(error);
  const ErrorCode code = Result<void>(error).code();
  const bool too_slow = code == ErrorCode::timed_out;
  if (code != ErrorCode::peer_lost) worker.overdue = after(loop_->now(), options_.open_timeout);
  worker.told.last_loss =
      too_slow ? worker.told.name + " has not answered within VectorEnvOptions::step_timeout (" +
                     text_of(options_.step_timeout) + ")"
               : why_lost(worker.told.name, error);
  ++worker.told.losses;
  for (std::size_t b = 0; b < options_.buffers; ++b) {
    Group& group = groups_[b * worker_count() + w];
    group.phase = Phase::lost;
    ++group.ticket;
    group.place = {};
    group.reply = {};
    group.resting.clear();
  }
  std::erase_if(arrived_, [&](std::size_t g) { return worker_of(g) == w; });
  const bool again = worker.told.opening;
  const std::string why = worker.told.last_loss;
  wake(lock);
  if (lock.owns_lock()) lock.unlock();
  if (!again) {
    core_->log().warning(why + "; " + kUntilReplaced);
    return;
  }
  if (too_slow) core_->log().warning(why + "; it is opened again");
  lock.lock();
  open_later(std::move(lock), w);
}

// worker_count(): it is none of them.
std::size_t VectorEnv::State::index_of(const std::string& worker) const {
  const auto at = std::ranges::find(options_.workers, worker);
  return static_cast<std::size_t>(at - options_.workers.begin());
}

// Also while nothing of it is under way, so that it is back when it is needed.
void VectorEnv::State::peer_lost(const PeerInfo& peer, const std::string& reason) {
  std::unique_lock lock(mutex_);
  const std::size_t w = index_of(peer.name);
  if (closed_ || w == worker_count()) return;
  workers_[w].overdue = TimePoint::max();
  if (!workers_[w].told.live || workers_[w].incarnation != peer.incarnation) return;
  lose(std::move(lock), w, std::make_exception_ptr(PeerLost(peer.name + " is lost: " + reason)));
}

// Perhaps in the place of one that is not to be opened again.
void VectorEnv::State::peer_joined(const PeerInfo& peer) {
  std::unique_lock lock(mutex_);
  const std::size_t w = index_of(peer.name);
  if (closed_ || w == worker_count()) return;
  Worker& worker = workers_[w];
  const bool was_live = worker.epoch != 0;  // others are being opened, or open_all() gives up
  if (!was_live || worker.told.live) return;
  worker.overdue = after(loop_->now(), options_.open_timeout);
  if (worker.told.opening) return;
  if (worker.incarnation == peer.incarnation) return;  // it itself, over another connection
  worker.told.opening = true;
  worker.refusal = nullptr;
  worker.pause = kFirstReopenPause;
  lock.unlock();
  open(w);
}

bool VectorEnv::State::wait_for_workers(std::size_t live, Duration timeout) {
  if (live > worker_count()) {
    throw InvalidArgument("VectorEnv::wait_for_workers: " + std::to_string(live) + " of " +
                          std::to_string(worker_count()));
  }
  const auto are_there = [this, live] {
    const auto is_live = [](const Worker& worker) { return worker.told.live; };
    return static_cast<std::size_t>(std::ranges::count_if(workers_, is_live)) >= live;
  };
  std::unique_lock lock(mutex_);
  return wait_until(lock, are_there, after(loop_->now(), timeout));
}

Future<void> VectorEnv::State::push_policy(Bytes bytes, std::uint64_t version) {
  require_policy("push_policy");
  const auto weights = std::make_shared<const Weights>(Weights{std::move(bytes), version});
  struct Taker {
    std::size_t worker;
    std::uint64_t epoch;
    env::SessionId session;
  };
  std::vector<Taker> takers;
  {
    const std::lock_guard lock(mutex_);
    if (weights_ != nullptr && version < weights_->version) {
      throw InvalidArgument("VectorEnv::push_policy: version " + std::to_string(version) +
                            " comes after " + std::to_string(weights_->version) +
                            "; workers do not go back");
    }
    weights_ = weights;
    for (std::size_t w = 0; w < worker_count(); ++w) {
      if (workers_[w].told.live) takers.push_back({w, workers_[w].epoch, workers_[w].session});
    }
  }
  std::vector<Future<void>> taken;
  for (const Taker& taker : takers) {
    taken.push_back(send_weights(taker.worker, taker.session, *weights, options_.step_timeout)
                        .then([self = shared_from_this(), taker](const Result<void>& result) {
                          if (result.has_value()) return;
                          std::unique_lock lock(self->mutex_);
                          const Worker& worker = self->workers_[taker.worker];
                          const bool same = worker.told.live && worker.epoch == taker.epoch;
                          if (self->closed_ || !same) return;
                          self->lose(std::move(lock), taker.worker, result.error());
                        }));
  }
  return when_all_settled(std::move(taken))
      .then([self = shared_from_this()](const std::vector<Result<void>>& /*results*/) {
        const std::lock_guard lock(self->mutex_);
        if (!self->any_live()) self->throw_nothing();
      });
}

}  // namespace batchrpc
