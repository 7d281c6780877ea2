#include "batchrpc/node/call_state.hpp"

#include <mutex>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/node/exposed.hpp"

namespace batchrpc::detail {

bool CancelHook::attach(std::shared_ptr<CallState> call) {
  const std::lock_guard lock(call->mutex_);
  if (call->cancelled()) return false;
  if (!call->under_way()) return true;  // and never will be cancelled
  next_ = std::exchange(call->hooks_, this);
  if (next_ != nullptr) next_->previous_ = this;
  attached_ = true;
  call_ = std::move(call);
  return true;
}

void CancelHook::detach() noexcept {
  if (!call_) return;
  const auto call = std::move(call_);
  const std::lock_guard lock(call->mutex_);
  if (!std::exchange(attached_, false)) return;
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ != nullptr ? previous_->next_ : call->hooks_) = next_;
}

void CallState::set_function(std::shared_ptr<ExposedFunction> function) {
  const std::lock_guard lock(mutex_);
  function_ = std::move(function);
}

std::shared_ptr<ExposedFunction> CallState::function() {
  const std::lock_guard lock(mutex_);
  return function_;
}

bool CallState::start() {
  const std::lock_guard lock(mutex_);
  if (cancelled()) return false;
  started_ = true;
  return true;
}

void CallState::end() noexcept {
  CallArguments arguments;  // of a call that failed without having run
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    if (!under_way()) return;
    phase_.store(Phase::ended, std::memory_order_release);
    if (!started_) arguments = std::move(arguments_);
    while (hooks_ != nullptr)
      std::exchange(hooks_, hooks_->next_)->attached_ = false;
    watch.swap(watch_);
  }
  if (!watch) return;
  for (Promise<void>& promise : watch->promises)
    promise.set_error(BrokenPromise("the call was answered, and can not be cancelled any more"));
}

void CallState::let_go() noexcept {
  arguments_ = {};
  sink.reset();
  std::shared_ptr<ExposedFunction> function;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  function.swap(function_);
}

bool CallState::cancel(bool also_started) noexcept {
  CallArguments arguments;
  std::shared_ptr<ExposedFunction> function;  // that never runs
  std::vector<Task> tasks;
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    if (!under_way() || (started_ && !also_started)) return false;
    phase_.store(Phase::cancelled, std::memory_order_release);
    if (!started_) {
      arguments = std::move(arguments_);
      function = function_;
    }
    while (hooks_ != nullptr) {
      CancelHook& hook = *std::exchange(hooks_, hooks_->next_);
      hook.attached_ = false;
      tasks.push_back(hook.task());
    }
    watch.swap(watch_);
  }
  if (function) function->discard(Decoder(arguments.segment, arguments.payloads));
  for (Task& task : tasks)
    task();
  if (watch) {
    watch->stop.request_stop();
    for (Promise<void>& promise : watch->promises)
      promise.set_value();
  }
  return true;
}

// Under the lock.
CallState::Watch& CallState::watch() {
  if (!watch_) watch_ = std::make_unique<Watch>();
  return *watch_;
}

std::stop_token CallState::stop_token() {
  const std::lock_guard lock(mutex_);
  if (cancelled()) {
    std::stop_source stopped;
    stopped.request_stop();
    return stopped.get_token();
  }
  std::stop_source& stop = watch().stop;
  if (!stop.stop_possible()) stop = std::stop_source();
  return stop.get_token();
}

Future<void> CallState::when_cancelled() {
  const std::lock_guard lock(mutex_);
  if (cancelled()) return make_ready_future();
  if (!under_way()) {
    return make_failed_future<void>(
        BrokenPromise("the call was answered, and can not be cancelled any more"));
  }
  return watch().promises.emplace_back().get_future();
}

}  // namespace batchrpc::detail
