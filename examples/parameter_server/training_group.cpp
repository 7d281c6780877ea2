#include "parameter_server/training_group.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc_examples {

namespace rpc = batchrpc;

TrainingGroup::TrainingGroup(std::size_t expected, std::int64_t iteration,
                             bool waits_for_iterations,
                             std::function<void(const std::vector<std::string>&)> members_changed)
    : expected_(expected),
      waits_(waits_for_iterations),
      members_changed_(std::move(members_changed)),
      iteration_(iteration) {}

// Completing a promise runs its callbacks, so it must happen outside the lock.
void TrainingGroup::Admitted::answer() {
  for (auto& promise : promises)
    promise.set_value(iteration);
}

void TrainingGroup::notify_members() const {
  std::vector<std::string> names;
  for (const auto& [name, trainer] : members_)
    names.push_back(name);
  members_changed_(names);
}

TrainingGroup::Admitted TrainingGroup::admit_all() {
  Admitted admitted{.promises = {}, .iteration = iteration_};
  for (auto& [name, waiting] : waiting_) {
    members_[name] = waiting.trainer;
    admitted.promises.push_back(std::move(waiting.promise));
  }
  waiting_.clear();
  if (!admitted.promises.empty()) notify_members();
  return admitted;
}

// Not during an update: that ends the iteration of the trainers that sent gradients.
TrainingGroup::Admitted TrainingGroup::admit_if_nobody_is_left() {
  return started_ && members_.empty() && !updating_ ? admit_all() : Admitted{};
}

rpc::Future<std::int64_t> TrainingGroup::join(const Trainer& trainer) {
  rpc::Promise<std::int64_t> promise;
  auto future = promise.get_future();
  Waiting replaced;  // of a trainer that was restarted while it waited
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    if (is_member(trainer)) {
      admitted.iteration = iteration_;
      admitted.promises.push_back(std::move(promise));
    } else {
      replaced = std::exchange(waiting_[trainer.name], {trainer, std::move(promise)});
      if (!started_) started_ = waiting_.size() >= expected_;
      admitted = started_ && !waits_ ? admit_all() : admit_if_nobody_is_left();
    }
  }
  admitted.answer();
  return future;
}

bool TrainingGroup::leave(const Trainer& trainer) {
  Waiting dropped;
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    if (is_waiting(trainer)) {
      const auto found = waiting_.find(trainer.name);
      dropped = std::move(found->second);
      waiting_.erase(found);
      return true;
    }
    if (!is_member(trainer)) return false;
    members_.erase(trainer.name);
    admitted = admit_if_nobody_is_left();
    if (admitted.promises.empty()) notify_members();
  }
  admitted.answer();
  return true;
}

bool TrainingGroup::begin_update(const std::vector<Trainer>& senders) {
  const std::lock_guard lock(mutex_);
  updating_ = std::any_of(senders.begin(), senders.end(),
                          [this](const Trainer& sender) { return is_member(sender); });
  return updating_;
}

void TrainingGroup::finish_iterations(std::int64_t until) {
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    if (iteration_ >= until) return;
    iteration_ = until;
    updating_ = false;
    admitted = admit_all();
  }
  admitted.answer();
}

void TrainingGroup::end_update() {
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    updating_ = false;
    admitted = admit_if_nobody_is_left();
  }
  admitted.answer();
}

std::int64_t TrainingGroup::iteration() const {
  const std::lock_guard lock(mutex_);
  return iteration_;
}

bool TrainingGroup::is_member(const Trainer& trainer) const {
  const auto found = members_.find(trainer.name);
  return found != members_.end() && found->second.incarnation == trainer.incarnation;
}

bool TrainingGroup::is_waiting(const Trainer& trainer) const {
  const auto found = waiting_.find(trainer.name);
  return found != waiting_.end() && found->second.trainer.incarnation == trainer.incarnation;
}

bool TrainingGroup::knows(const Trainer& trainer) const {
  const std::lock_guard lock(mutex_);
  return is_member(trainer) || is_waiting(trainer);
}

bool TrainingGroup::contains(const Trainer& trainer) const {
  const std::lock_guard lock(mutex_);
  return is_member(trainer);
}

std::vector<TrainingGroup::Trainer> TrainingGroup::members() const {
  const std::lock_guard lock(mutex_);
  std::vector<Trainer> trainers;
  for (const auto& [name, trainer] : members_)
    trainers.push_back(trainer);
  return trainers;
}

bool TrainingGroup::started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

bool TrainingGroup::over() const {
  const std::lock_guard lock(mutex_);
  return started_ && members_.empty() && waiting_.empty();
}

}  // namespace batchrpc_examples
