#include "parameter_server/parameter_server.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/counted.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;

namespace {

constexpr std::size_t kMostTrainers = 1024;
constexpr std::size_t kLeastQueue = 1 << 20;

rpc::PeerIdentity caller() {
  const rpc::CallContext* const context = rpc::CallContext::current();
  return context != nullptr ? context->caller() : rpc::PeerIdentity();
}

std::vector<rpc::PeerIdentity> senders(const rpc::BatchInfo& info) {
  std::vector<rpc::PeerIdentity> all;
  for (const rpc::BatchInfo::Call& call : info.calls) {
    if (call.caller) all.push_back(*call.caller);
  }
  return all;
}

at::Tensor mean_of(const GradientTotal& total) {
  const at::NoGradGuard no_grad;
  if (total.gradients > 1) total.sum.div_(static_cast<double>(total.gradients));
  return total.sum;
}

struct EndOfUpdate {
  TrainingGroup& group;
  ~EndOfUpdate() { group.end_update(); }
};

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
          [this](const GradientTotal& total, const rpc::BatchInfo& info) {
            return finish_update(total, info);
          }};
}

ParameterServer::Update ParameterServer::make_update() {
  const auto message = static_cast<std::size_t>(model_.parameters()) * sizeof(float);
  rpc::BatchOptions options;
  options.max_size = options_.mode == UpdateMode::async ? 1 : kMostTrainers;
  options.order_by_peer = options_.in_order_of_ranks;
  // Takes one gradient at a time. Receiving a second one in the meantime would save a tenth of the
  // time, but need the memory of another model.
  options.max_queue_bytes = std::max(message + 65536, kLeastQueue);
  // To add in the order of ranks, the gradients of all trainers, including late ones, must be there
  // before the first is added.
  if (options_.in_order_of_ranks) {
    options.max_queue_bytes =
        std::max(options.max_queue_bytes, (message + 4096) * (options_.trainers + 64));
  }
  return {options, rpc::reduce(gradient_sum()), {.check = [this](const at::Tensor& gradient) {
            check_caller(false);
            require_gradient(gradient, model_.parameters());
          }}};
}

void ParameterServer::check_caller(bool by_hand) const {
  if (by_hand != (options_.mode == UpdateMode::sync)) {
    throw rpc::InvalidArgument(
        by_hand ? "update_by_hand is only for mode sync; use update_and_fetch_model"
                : "in mode sync use update_by_hand");
  }
  const rpc::PeerIdentity trainer = caller();
  if (!group_.contains(trainer)) {
    throw rpc::InvalidArgument(trainer.name + " is not in the training: it must join first");
  }
  if (own_iteration(trainer.name) >= options_.iterations) {
    throw rpc::InvalidArgument("the training is over, after " +
                               counted(options_.iterations, "iteration"));
  }
}

void ParameterServer::wait_for(const std::vector<std::string>& trainers) {
  if (options_.mode != UpdateMode::batch) return;
  rpc::BatchOptions options = update_and_fetch_model.options();
  options.all_of = trainers;
  update_and_fetch_model.set_options(options);
}

rpc::Future<TrainingStart> ParameterServer::join() {
  const bool is_late = group_.started();
  return group_.join(caller()).then([this, trainer = caller(), is_late](std::int64_t iteration) {
    if (options_.mode == UpdateMode::async) {
      const std::lock_guard lock(progress_mutex_);
      progress_[trainer.name] = {.version = version_, .iteration = iteration};
    }
    if (is_late) events_.joined(trainer, group_.members().size());
    return TrainingStart{.iteration = iteration,
                         .iterations = options_.iterations,
                         .parameters = model_.parameters(),
                         .elements = model_.elements(),
                         .mode = options_.mode};
  });
}

void ParameterServer::report(const IterationReport& report) {
  events_.reported(caller().name, report);
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

void ParameterServer::fail(const std::string& why) {
  // A trainer that hung and was lost has been reported already.
  if (group_.knows(caller())) events_.failed(caller().name, why);
  lose(caller());
}

bool ParameterServer::lose(const rpc::PeerIdentity& trainer) {
  const bool was_there = group_.leave(trainer);
  if (options_.mode == UpdateMode::sync) update_when_all_are_there();
  if (options_.mode == UpdateMode::async && was_there) {
    group_.finish_iterations(finished_without(trainer.name));
  }
  return was_there;
}

at::Tensor ParameterServer::finish_update(const GradientTotal& total, const rpc::BatchInfo& info) {
  // If all of them are gone, their iteration would still have to be done by the trainers that were
  // restarted in their place.
  const std::vector<rpc::PeerIdentity> trainers = senders(info);
  if (!group_.begin_update(trainers)) {
    throw rpc::InvalidArgument("the trainers that sent the gradients are gone");
  }
  const EndOfUpdate end{group_};
  UpdateReport report{.iteration = group_.iteration(),
                      .finished = group_.iteration() + 1,
                      .gradients = static_cast<std::int64_t>(info.rows),
                      .sum_seconds = total.seconds};
  Stopwatch time;
  at::Tensor values = options_.step ? model_.step(mean_of(total)) : model_.values();
  report.step_seconds = time.lap();
  if (options_.mode == UpdateMode::async) count_own(trainers.front().name, report);
  if (events_.checkpoint && report.finished > group_.iteration()) {
    events_.checkpoint(report, model_);
    report.checkpoint_seconds = time.lap();
  }
  group_.finish_iterations(report.finished);
  events_.updated(report);
  return values;
}

std::int64_t ParameterServer::own_iteration(const std::string& trainer) const {
  if (options_.mode != UpdateMode::async) return group_.iteration();
  const std::lock_guard lock(progress_mutex_);
  const auto own = progress_.find(trainer);
  return own == progress_.end() ? group_.iteration() : own->second.iteration;
}

void ParameterServer::count_own(const std::string& trainer, UpdateReport& report) {
  const std::lock_guard lock(progress_mutex_);
  if (const auto own = progress_.find(trainer); own != progress_.end()) {
    report.staleness = version_ - own->second.version;
    report.iteration = own->second.iteration;
    own->second = {.version = version_ + 1, .iteration = report.iteration + 1};
  }
  ++version_;
  report.finished = finished_by_all();
}

// A trainer that has finished still counts: if others are lost afterwards, the training has
// succeeded.
std::int64_t ParameterServer::finished_without(const std::string& trainer) {
  const std::lock_guard lock(progress_mutex_);
  const auto own = progress_.find(trainer);
  if (own != progress_.end() && own->second.iteration < options_.iterations) progress_.erase(own);
  return finished_by_all();
}

std::int64_t ParameterServer::finished_by_all() const {
  if (progress_.empty()) return group_.iteration();
  std::int64_t least = options_.iterations;
  for (const auto& [trainer, progress] : progress_)
    least = std::min(least, progress.iteration);
  return least;
}

rpc::Future<at::Tensor> ParameterServer::update_by_hand(const at::Tensor& gradient) {
  check_caller(true);
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
  std::exception_ptr error;
  {
    const std::lock_guard lock(by_hand_mutex_);
    if (waiting_.empty()) return;
    const auto members = group_.members();
    const auto there = std::count_if(members.begin(), members.end(), [&](const auto& trainer) {
      return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
        return each.trainer.name == trainer.name && each.trainer.incarnation == trainer.incarnation;
      });
    });
    // If none of the members is among the senders, all senders are gone: the update fails.
    if (there > 0 && there < std::ssize(members)) return;
    rpc::BatchInfo info;
    info.rows = waiting_.size();
    for (const Waiting& each : waiting_)
      info.calls.push_back({.caller = std::make_shared<rpc::PeerIdentity>(each.trainer)});
    try {
      values = by_hand_.finish(info);
    } catch (...) {
      error = std::current_exception();
    }
    answered = std::exchange(waiting_, {});
  }
  for (Waiting& each : answered)
    error ? each.promise.set_error(error) : each.promise.set_value(values);
}

}  // namespace batchrpc_examples
