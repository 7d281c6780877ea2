#include "parameter_server/parameter_server.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace batchrpc_examples {

namespace rpc = batchrpc;

namespace {

constexpr std::size_t kMostTrainers = 1024;
constexpr std::size_t kLeastQueue = 1 << 20;

std::string caller() {
  const rpc::CallContext* const context = rpc::CallContext::current();
  return context != nullptr ? context->caller().name : std::string();
}

class Stopwatch {
 public:
  /// Seconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace

ParameterServer::ParameterServer(const ServerOptions& options, at::Tensor values,
                                 std::int64_t parameters, const SgdOptions& sgd,
                                 ServerEvents events)
    : options_(options),
      events_(std::move(events)),
      model_(std::move(values), parameters, sgd),
      by_hand_(gradient_sum()),
      update_and_fetch_model(make_update()),
      group_(options.trainers, options.first_iteration, options.mode != UpdateMode::async,
             [this](const std::vector<std::string>& trainers) { wait_for(trainers); }) {}

GradientSum ParameterServer::gradient_sum() {
  return {model_.parameters(), options_.sum,
          [this](const at::Tensor& mean, const rpc::BatchInfo& info, double seconds) {
            return finish_update(mean, info, seconds);
          }};
}

ParameterServer::Update ParameterServer::make_update() {
  const auto message = static_cast<std::size_t>(model_.parameters()) * sizeof(float);
  rpc::BatchOptions options;
  options.max_size = options_.mode == UpdateMode::async ? 1 : kMostTrainers;
  options.order_by_peer = options_.in_order_of_ranks;
  // In order of ranks the gradients of all are there before the first is added; of those, too, who
  // come late.
  // One gradient at a time: a second one that comes in meanwhile would save a tenth of the time and
  // take the memory of another model.
  options.max_queue_bytes = std::max(message + 65536, kLeastQueue);
  if (options_.in_order_of_ranks) {
    options.max_queue_bytes =
        std::max(options.max_queue_bytes, (message + 4096) * (options_.trainers + 64));
  }
  return {options, rpc::reduce(gradient_sum()), {.check = [this](const at::Tensor& gradient) {
            check_caller();
            require_gradient(gradient, model_.parameters());
          }}};
}

void ParameterServer::check_caller() const {
  const std::string trainer = caller();
  if (!group_.contains(trainer)) {
    throw rpc::InvalidArgument(trainer + " is not in the training: it is to join (again) first");
  }
  if (options_.mode != UpdateMode::async && group_.iteration() >= options_.iterations) {
    throw rpc::InvalidArgument("the training is over, after " +
                               std::to_string(options_.iterations) + " iterations");
  }
}

void ParameterServer::wait_for(const std::vector<std::string>& trainers) {
  if (options_.mode != UpdateMode::batch) return;
  rpc::BatchOptions options = update_and_fetch_model.options();
  options.all_of = trainers;
  update_and_fetch_model.set_options(options);
}

rpc::Future<TrainingStart> ParameterServer::join() {
  return group_.join(caller()).then([this, trainer = caller()](std::int64_t iteration) {
    if (options_.mode == UpdateMode::async) {
      const std::lock_guard lock(versions_mutex_);
      versions_[trainer] = iteration;
      iteration /= static_cast<std::int64_t>(options_.trainers);
    }
    return TrainingStart{.iteration = iteration,
                         .iterations = options_.iterations,
                         .parameters = model_.parameters(),
                         .elements = model_.elements()};
  });
}

void ParameterServer::keep_result(at::Tensor values) {
  const std::lock_guard lock(result_mutex_);
  result_ = std::move(values);
}

at::Tensor ParameterServer::result() const {
  const std::lock_guard lock(result_mutex_);
  return result_;
}

void ParameterServer::leave() { lose(caller()); }

bool ParameterServer::lose(const std::string& trainer) {
  const bool was_there = group_.leave(trainer);
  if (options_.mode == UpdateMode::sync) update_when_all_are_there();
  return was_there;
}

at::Tensor ParameterServer::finish_update(const at::Tensor& mean, const rpc::BatchInfo& info,
                                          double seconds) {
  UpdateReport report{.iteration = group_.iteration(),
                      .gradients = static_cast<std::int64_t>(info.rows),
                      .sum_seconds = seconds};
  Stopwatch time;
  at::Tensor values = options_.step ? model_.step(mean) : model_.values();
  report.step_seconds = time.lap();
  if (events_.checkpoint) {
    events_.checkpoint(report.iteration + 1, model_);
    report.checkpoint_seconds = time.lap();
  }
  if (options_.mode == UpdateMode::async) report.staleness = staleness(info);
  group_.finish_iteration();
  events_.updated(report);
  return values;
}

std::int64_t ParameterServer::staleness(const rpc::BatchInfo& info) {
  const std::int64_t version = group_.iteration();
  if (info.calls.empty() || !info.calls[0].caller) return 0;
  const std::lock_guard lock(versions_mutex_);
  return version - std::exchange(versions_[info.calls[0].caller->name], version + 1);
}

rpc::Future<at::Tensor> ParameterServer::update_by_hand(const at::Tensor& gradient) {
  check_caller();
  rpc::Promise<at::Tensor> promise;
  auto future = promise.get_future();
  {
    const std::lock_guard lock(by_hand_mutex_);
    if (waiting_.empty()) by_hand_.begin();
    by_hand_.accumulate(gradient);
    waiting_.push_back({caller(), std::move(promise)});
  }
  update_when_all_are_there();
  return future;
}

void ParameterServer::update_when_all_are_there() {
  std::vector<Waiting> answered;
  at::Tensor values;
  {
    const std::lock_guard lock(by_hand_mutex_);
    if (waiting_.empty()) return;
    for (const std::string& trainer : group_.members()) {
      const bool is_there = std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
        return each.trainer == trainer;
      });
      if (!is_there) return;
    }
    rpc::BatchInfo info;
    info.rows = waiting_.size();
    values = by_hand_.finish(info);
    answered = std::exchange(waiting_, {});
  }
  for (Waiting& each : answered)
    each.promise.set_value(values);
}

}  // namespace batchrpc_examples
