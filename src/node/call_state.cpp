#include "batchrpc/node/call_state.hpp"

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

void CallState::put_aside(Arguments arguments) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(arguments);
}

void CallState::set_function(std::shared_ptr<ExposedFunction> function) {
  const std::lock_guard lock(mutex_);
  function_ = std::move(function);
}

bool CallState::start(Arguments& arguments) {
  std::shared_ptr<ExposedFunction> function;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (cancelled()) return false;
  arguments = std::move(waiting_);
  function.swap(function_);
  return true;
}

void CallState::end() noexcept {
  Arguments arguments;  // of a call that failed without having run
  std::shared_ptr<ExposedFunction> function;
  std::vector<Promise<void>> promises;
  {
    const std::lock_guard lock(mutex_);
    if (!under_way()) return;
    phase_.store(Phase::ended, std::memory_order_release);
    arguments = std::move(waiting_);
    function.swap(function_);
    while (hooks_ != nullptr)
      std::exchange(hooks_, hooks_->next_)->attached_ = false;
    promises.swap(promises_);
  }
  for (Promise<void>& promise : promises)
    promise.set_error(BrokenPromise("the call was answered, and can not be cancelled any more"));
}

void CallState::cancel() noexcept {
  Arguments arguments;
  std::shared_ptr<ExposedFunction> function;
  std::vector<Task> tasks;
  std::stop_source stop{std::nostopstate};
  std::vector<Promise<void>> promises;
  {
    const std::lock_guard lock(mutex_);
    if (!under_way()) return;
    phase_.store(Phase::cancelled, std::memory_order_release);
    arguments = std::move(waiting_);
    function.swap(function_);
    while (hooks_ != nullptr) {
      CancelHook& hook = *std::exchange(hooks_, hooks_->next_);
      hook.attached_ = false;
      tasks.push_back(hook.task());
    }
    stop = stop_;
    promises.swap(promises_);
  }
  if (function) function->discard(Decoder(arguments.segment, arguments.payloads));
  for (Task& task : tasks)
    task();
  stop.request_stop();
  for (Promise<void>& promise : promises)
    promise.set_value();
}

std::stop_token CallState::stop_token() {
  const std::lock_guard lock(mutex_);
  if (!stop_.stop_possible()) {
    stop_ = std::stop_source();
    if (cancelled()) stop_.request_stop();
  }
  return stop_.get_token();
}

Future<void> CallState::when_cancelled() {
  const std::lock_guard lock(mutex_);
  if (cancelled()) return make_ready_future();
  if (!under_way()) {
    return make_failed_future<void>(
        BrokenPromise("the call was answered, and can not be cancelled any more"));
  }
  return promises_.emplace_back().get_future();
}

}  // namespace batchrpc::detail
