#include "parameter_server/training_group.hpp"

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

// Promises run what waits for them: outside of the lock.
void TrainingGroup::Admitted::answer() {
  for (auto& promise : promises)
    promise.set_value(iteration);
}

TrainingGroup::Admitted TrainingGroup::admit_all() {
  Admitted admitted{.promises = {}, .iteration = iteration_};
  for (auto& [name, promise] : waiting_) {
    members_.insert(name);
    admitted.promises.push_back(std::move(promise));
  }
  waiting_.clear();
  if (!admitted.promises.empty()) members_changed_({members_.begin(), members_.end()});
  return admitted;
}

rpc::Future<std::int64_t> TrainingGroup::join(const std::string& name) {
  rpc::Promise<std::int64_t> promise;
  auto future = promise.get_future();
  rpc::Promise<std::int64_t> replaced;  // of a trainer that was restarted while it waited
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    if (members_.contains(name)) {
      admitted.iteration = iteration_;
      admitted.promises.push_back(std::move(promise));
    } else {
      auto& place = waiting_[name];
      replaced = std::exchange(place, std::move(promise));
      if (!started_) started_ = waiting_.size() >= expected_;
      if (started_ && (!waits_ || members_.empty())) admitted = admit_all();
    }
  }
  admitted.answer();
  return future;
}

bool TrainingGroup::leave(const std::string& name) {
  rpc::Promise<std::int64_t> dropped;
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = waiting_.find(name); found != waiting_.end()) {
      dropped = std::move(found->second);
      waiting_.erase(found);
      return true;
    }
    if (members_.erase(name) == 0) return false;
    if (members_.empty() && !waiting_.empty()) {
      admitted = admit_all();
    } else {
      members_changed_({members_.begin(), members_.end()});
    }
  }
  admitted.answer();
  return true;
}

std::int64_t TrainingGroup::finish_iteration() {
  std::int64_t finished = 0;
  Admitted admitted;
  {
    const std::lock_guard lock(mutex_);
    finished = iteration_++;
    admitted = admit_all();
  }
  admitted.answer();
  return finished;
}

std::int64_t TrainingGroup::iteration() const {
  const std::lock_guard lock(mutex_);
  return iteration_;
}

bool TrainingGroup::contains(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return members_.contains(name);
}

std::vector<std::string> TrainingGroup::members() const {
  const std::lock_guard lock(mutex_);
  return {members_.begin(), members_.end()};
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
