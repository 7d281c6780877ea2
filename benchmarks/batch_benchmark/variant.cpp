#include "batch_benchmark/variant.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace batch_benchmark {

namespace {

constexpr std::int64_t kSteps = 500;  // per observer's episode

std::string with_place(const char* name, bool on_workers) {
  return std::string(name) + (on_workers ? ", workers" : ", short");
}

}  // namespace

Variant batcher_variant(const Setting& setting) {
  return {.how = How::batcher, .name = "batcher, " + setting.name(), .setting = setting};
}
Variant unbatched_variant(bool on_workers) {
  return {
      .how = How::unbatched, .name = with_place("unbatched", on_workers), .on_workers = on_workers};
}
Variant by_hand_variant(bool on_workers) {
  return {.how = How::by_hand, .name = with_place("by hand", on_workers), .on_workers = on_workers};
}

/// The tutorial's pattern on this library's futures. It needs one promise per row, because a future
/// has one consumer; the tutorial shares one future and takes a row of its value.
class Served::ByHand {
 public:
  ByHand(std::shared_ptr<ActingPolicy> policy, std::size_t observers)
      : policy_(std::move(policy)), observers_(observers) {}

  batchrpc::Future<std::int64_t> act(at::Tensor state) {
    batchrpc::Promise<std::int64_t> promise;
    auto future = promise.get_future();
    std::unique_lock lock(mutex_);
    states_.push_back(std::move(state));
    waiting_.push_back(std::move(promise));
    if (waiting_.size() >= observers_) answer(lock);
    return future;
  }

  void release() {
    std::unique_lock lock(mutex_);
    observers_ = 1;
    if (!waiting_.empty()) answer(lock);
  }

 private:
  // Releases the lock.
  void answer(std::unique_lock<std::mutex>& lock) {
    const std::vector<at::Tensor> states = std::exchange(states_, {});
    std::vector<batchrpc::Promise<std::int64_t>> waiting = std::exchange(waiting_, {});
    lock.unlock();
    const at::Tensor actions = policy_->act(at::stack(states));
    const auto* action = actions.data_ptr<std::int64_t>();
    for (auto& promise : waiting)
      promise.set_value(*action++);
  }

  const std::shared_ptr<ActingPolicy> policy_;
  std::mutex mutex_;  // guards the members below
  std::size_t observers_;
  std::vector<at::Tensor> states_;
  std::vector<batchrpc::Promise<std::int64_t>> waiting_;
};

Served::Served(const batchrpc::Node& node, const Variant& variant,
               const std::vector<std::string>& observers, bool grad,
               const std::function<void(batchrpc::BatchOptions&)>& adjust)
    : node_(node),
      policy_(std::make_shared<ActingPolicy>(
          grad, kSteps * static_cast<std::int64_t>(observers.size()))) {
  const batchrpc::ExposeOptions expose{.short_handler = !variant.on_workers};
  switch (variant.how) {
    case How::batcher: {
      batchrpc::BatchOptions options = variant.setting->options(observers);
      if (adjust) adjust(options);
      batcher_.emplace(std::move(options),
                       [policy = policy_](const at::Tensor& rows) { return policy->act(rows); });
      node.expose(function(), *batcher_);
      break;
    }
    case How::unbatched:
      node.expose(
          function(), [policy = policy_](const at::Tensor& row) { return policy->act_once(row); },
          expose);
      break;
    case How::by_hand:
      by_hand_ = std::make_shared<ByHand>(policy_, observers.size());
      node.expose(
          function(), [by_hand = by_hand_](at::Tensor row) { return by_hand->act(std::move(row)); },
          expose);
      break;
  }
}

Served::~Served() { node_.unexpose(function()); }

void Served::release() {
  if (by_hand_) by_hand_->release();
  if (!batcher_) return;
  batchrpc::BatchOptions options = batcher_->options();
  options.all_of.clear();
  options.min_size = 1;
  options.max_wait = {};
  batcher_->set_options(std::move(options));
}

double Served::mean_batch() const { return batcher_ ? batcher_->statistics().sizes.mean() : 1; }

}  // namespace batch_benchmark
