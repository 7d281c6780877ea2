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

// The driver opens a worker until it is live or refused. It opens a lost one again, unless the
// worker itself failed. A failed or refused worker can be replaced by another process of its name.
namespace batchrpc {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstReopenPause = 20ms;
constexpr Duration kLongestReopenPause = 1s;
constexpr const char* kUntilReplaced =
    "it is opened again when another process with its name joins";

std::string why_lost(const std::string& worker, const std::exception_ptr& error) {
  const std::string why = describe(error);
  return why.starts_with(worker + " ") ? why : worker + " is lost: " + why;
}

}  // namespace

// Whether opening it again would be useless.
bool VectorEnv::State::is_final(const std::exception_ptr& error) const {
  switch (Result<void>(error).code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::remote_error:
    case ErrorCode::bad_signature:
    case ErrorCode::bad_message:
      return true;
    case ErrorCode::shut_down:  // this node's, or that of a node whose name another may take
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
  const auto refused = [](const Worker& worker) { return worker.refusal != nullptr; };
  const auto opening = [](const Worker& worker) { return worker.told.opening; };
  const auto lock = lock_when([&] {
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

// Opens a worker whose state is `opening`. Ends in opened(), at once or later.
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

// The caller must not hold the mutex.
void VectorEnv::State::perform(Deferred todo) {
  if (todo.wakes) todo.wakes->set_value();
  if (!todo.warning.empty()) core_->log().warning(todo.warning);
  for (const Order& order : todo.resets)
    send_reset(order, todo.seed + order.group * options_.envs_per_worker);
  if (!todo.opens) return;
  if (!todo.opens_at) return open(*todo.opens);
  loop_->schedule(*todo.opens_at, [self = weak_from_this(), w = *todo.opens] {
    if (const auto state = self.lock()) state->open(w);
  });
}

void VectorEnv::State::open_later(std::size_t w, Deferred& todo) {
  Worker& worker = workers_[w];
  const Duration pause = worker.pause;
  worker.pause = std::clamp<Duration>(2 * pause, kFirstReopenPause, kLongestReopenPause);
  todo.opens = w;
  if (pause == Duration::zero()) return;
  todo.opens_at = std::min(after(loop_->now(), pause), worker.give_up);
}

void VectorEnv::State::opened(std::size_t w, Result<env::OpenReply> result) {
  Deferred todo;
  env::SessionId session;
  std::shared_ptr<const Weights> weights;  // weights to send before the worker begins
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    std::exception_ptr refusal;
    if (result.has_value()) {
      try {
        accept(workers_[w], result.value());
      } catch (...) {
        refusal = std::current_exception();
      }
    }
    if (!result.has_value()) {
      todo = not_opened(w, result.error());
    } else if (refusal) {
      todo = refuse(w, std::move(refusal));
    } else if (weights_ == nullptr) {
      todo = begin(w);
    } else {
      session = workers_[w].session;
      weights = weights_;
    }
  }
  perform(std::move(todo));
  if (weights != nullptr) give_weights(w, session, std::move(weights));
}

// Throws InvalidArgument unless its environments match the others'.
void VectorEnv::State::accept(Worker& worker, const env::OpenReply& reply) {
  worker.incarnation = reply.incarnation;
  description_.accept(worker.told.name, reply, env::limits_of(core_->options()));
  worker.session = reply.session;
}

// Sends weights before the environments begin, and then any that were pushed in the meantime.
void VectorEnv::State::give_weights(std::size_t w, const env::SessionId& session,
                                    std::shared_ptr<const Weights> weights) {
  Future<void> taken = send_weights(w, session, *weights, options_.open_timeout);
  static_cast<void>(
      std::move(taken).then([self = weak_from_this(), w, session,
                             weights = std::move(weights)](const Result<void>& result) {
        if (const auto state = self.lock()) state->weights_taken(w, session, weights, result);
      }));
}

void VectorEnv::State::weights_taken(std::size_t w, const env::SessionId& session,
                                     const std::shared_ptr<const Weights>& weights,
                                     const Result<void>& result) {
  Deferred todo;
  std::shared_ptr<const Weights> newer;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (!result.has_value()) {
      todo = not_opened(w, result.error());
    } else if (weights_ == weights) {
      todo = begin(w);
    } else {
      newer = weights_;
    }
  }
  perform(std::move(todo));
  if (newer != nullptr) give_weights(w, session, std::move(newer));
}

// The worker becomes live. One that was lost begins new episodes.
VectorEnv::State::Deferred VectorEnv::State::begin(std::size_t w) {
  Worker& worker = workers_[w];
  worker.told.opening = false;
  worker.told.live = true;
  worker.give_up = TimePoint::max();
  worker.overdue = TimePoint::max();
  worker.epoch = ++epochs_;
  groups_.begin(w);
  Deferred todo{.seed = seed_ + worker.told.losses * size()};
  for (std::size_t g = w; worker.told.losses > 0 && g < groups_.size(); g += worker_count())
    todo.resets.push_back(order(g, {}));
  todo.wakes = waiter_.take_if_true();
  return todo;
}

VectorEnv::State::Deferred VectorEnv::State::not_opened(std::size_t w,
                                                        const std::exception_ptr& error) {
  if (is_final(error)) return refuse(w, error);
  Worker& worker = workers_[w];
  const TimePoint now = loop_->now();
  if (now >= worker.give_up) {
    return refuse(w, std::make_exception_ptr(
                         TimedOut("VectorEnv: worker " + worker.told.name +
                                  " could not be opened within VectorEnvOptions::open_timeout (" +
                                  text_of(options_.open_timeout) +
                                  "); check that its EnvWorker runs, with the service " +
                                  options_.service + ". The last attempt: " + describe(error))));
  }
  Deferred todo;
  const bool may_be_asked_for_ever = worker.epoch != 0;
  if (may_be_asked_for_ever && now >= worker.overdue) {
    worker.overdue = TimePoint::max();
    worker.told.last_loss = worker.told.name + " could not be opened again within " +
                            "VectorEnvOptions::open_timeout (" + text_of(options_.open_timeout) +
                            "): " + describe(error);
    todo.warning = worker.told.last_loss + "; trying again";
  }
  open_later(w, todo);
  return todo;
}

VectorEnv::State::Deferred VectorEnv::State::refuse(std::size_t w, std::exception_ptr why) {
  Worker& worker = workers_[w];
  worker.told.last_loss = why_lost(worker.told.name, why);
  worker.told.opening = false;
  ++worker.told.refusals;
  worker.refusal = std::move(why);
  Deferred todo{.wakes = waiter_.take_if_true()};
  const bool was_live = worker.epoch != 0;
  if (was_live) todo.warning = worker.told.last_loss + "; " + kUntilReplaced;
  return todo;
}

// A live worker is lost, and with it everything it had.
VectorEnv::State::Deferred VectorEnv::State::lose(std::size_t w, const std::exception_ptr& error) {
  Worker& worker = workers_[w];
  worker.told.live = false;
  worker.told.opening = !is_final(error);
  const ErrorCode code = Result<void>(error).code();
  const bool too_slow = code == ErrorCode::timed_out;
  if (code != ErrorCode::peer_lost) worker.overdue = after(loop_->now(), options_.open_timeout);
  worker.told.last_loss = too_slow ? worker.told.name +
                                         " did not answer within VectorEnvOptions::step_timeout (" +
                                         text_of(options_.step_timeout) + ")"
                                   : why_lost(worker.told.name, error);
  ++worker.told.losses;
  groups_.lose(w);
  Deferred todo{.wakes = waiter_.take_if_true()};
  if (!worker.told.opening) {
    todo.warning = worker.told.last_loss + "; " + kUntilReplaced;
    return todo;
  }
  if (too_slow) todo.warning = worker.told.last_loss + "; opening it again";
  open_later(w, todo);
  return todo;
}

// Returns worker_count() for a name that is not a worker's.
std::size_t VectorEnv::State::index_of(const std::string& worker) const {
  const auto at = std::ranges::find(options_.workers, worker);
  return static_cast<std::size_t>(at - options_.workers.begin());
}

// Reacts even if no group of it is being stepped, so that it is back when needed.
void VectorEnv::State::peer_lost(const PeerInfo& peer, const std::string& reason) {
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t w = index_of(peer.name);
    if (closed_ || w == worker_count()) return;
    workers_[w].overdue = TimePoint::max();
    if (!workers_[w].told.live || workers_[w].incarnation != peer.incarnation) return;
    todo = lose(w, std::make_exception_ptr(PeerLost(peer.name + " is lost: " + reason)));
  }
  perform(std::move(todo));
}

// The peer may replace a worker that would not be opened again.
void VectorEnv::State::peer_joined(const PeerInfo& peer) {
  const std::size_t w = index_of(peer.name);
  if (w == worker_count()) return;
  {
    const std::lock_guard lock(mutex_);
    Worker& worker = workers_[w];
    const bool was_live = worker.epoch != 0;  // otherwise open_all() opens it, or gives up
    if (closed_ || !was_live || worker.told.live) return;
    worker.overdue = after(loop_->now(), options_.open_timeout);
    if (worker.told.opening) return;
    if (worker.incarnation == peer.incarnation) return;  // the same process over another connection
    worker.told.opening = true;
    worker.refusal = nullptr;
    worker.pause = kFirstReopenPause;
  }
  open(w);
}

bool VectorEnv::State::wait_for_workers(std::size_t live, Duration timeout) {
  if (live > worker_count()) {
    throw InvalidArgument("VectorEnv::wait_for_workers: " + std::to_string(live) +
                          " workers were requested, but there are only " +
                          std::to_string(worker_count()));
  }
  const auto are_there = [this, live] {
    const auto is_live = [](const Worker& worker) { return worker.told.live; };
    return static_cast<std::size_t>(std::ranges::count_if(workers_, is_live)) >= live;
  };
  const auto lock = lock_when(are_there, after(loop_->now(), timeout));
  return are_there();
}

Future<void> VectorEnv::State::push_policy(Bytes bytes, std::uint64_t version) {
  description_.require_policy("push_policy");
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
                            " is older than the present version " +
                            std::to_string(weights_->version) +
                            "; workers cannot go back to an older version");
    }
    weights_ = weights;
    for (std::size_t w = 0; w < worker_count(); ++w) {
      if (workers_[w].told.live) takers.push_back({w, workers_[w].epoch, workers_[w].session});
    }
  }
  std::vector<Future<void>> taken;
  taken.reserve(takers.size());
  for (const Taker& taker : takers) {
    taken.push_back(send_weights(taker.worker, taker.session, *weights, options_.step_timeout)
                        .then([self = shared_from_this(), taker](const Result<void>& result) {
                          if (result.has_value()) return;
                          Deferred todo;
                          {
                            const std::lock_guard lock(self->mutex_);
                            const Worker& worker = self->workers_[taker.worker];
                            const bool same = worker.told.live && worker.epoch == taker.epoch;
                            if (self->closed_ || !same) return;
                            todo = self->lose(taker.worker, result.error());
                          }
                          self->perform(std::move(todo));
                        }));
  }
  return when_all_settled(std::move(taken))
      .then([self = shared_from_this()](const std::vector<Result<void>>& /*results*/) {
        const std::lock_guard lock(self->mutex_);
        if (!self->any_live()) self->throw_nothing();
      });
}

}  // namespace batchrpc
