#include "batchrpc/call/call_state.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/exposed.hpp"

namespace batchrpc::detail {

bool CancelHook::attach(Ref<CallState> call) {
  const std::lock_guard lock(call->mutex_);
  const std::uint8_t state = call->look();
  if (CallState::phase_of(state) == CallState::Phase::cancelled) return false;
  if (!CallState::is_under_way(state)) return true;  // and it never will be cancelled
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
  return is_under_way(look()) ? function_ : nullptr;
}

std::shared_ptr<LocalNode> CallState::node() {
  const std::lock_guard lock(mutex_);
  return phase_of(look()) != Phase::ended && sink ? sink->node() : nullptr;
}

bool CallState::start() {
  std::uint8_t seen = state_.load(std::memory_order_acquire);
  while (phase_of(seen) == Phase::waiting) {
    const auto started = static_cast<std::uint8_t>(Phase::running | (seen & kWatched));
    if (state_.compare_exchange_weak(seen, started, std::memory_order_acq_rel)) return true;
  }
  return phase_of(seen) != Phase::cancelled;
}

void CallState::end() noexcept {
  std::uint8_t seen = state_.load(std::memory_order_acquire);
  while (is_under_way(seen) &&
         !state_.compare_exchange_weak(seen, Phase::ended, std::memory_order_acq_rel)) {
  }
  if (seen == Phase::running || phase_of(seen) == Phase::ended) return;
  CallArguments arguments;  // the call may have failed without running
  if (phase_of(seen) == Phase::waiting) arguments = std::move(arguments_);
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    if (phase_of(seen) == Phase::cancelled) return;  // cancel() handles the watch
    while (hooks_ != nullptr)
      std::exchange(hooks_, hooks_->next_)->attached_ = false;
    watch.swap(watch_);
  }
  if (!watch) return;
  for (Promise<void>& promise : watch->promises)
    promise.set_error(BrokenPromise("the call was answered and can no longer be cancelled"));
}

void CallState::let_go() noexcept {
  arguments_ = {};
  std::shared_ptr<ReplySink> own;
  if (cancelled()) {  // its handler may be looking at the sink
    const std::lock_guard lock(mutex_);
    own.swap(sink);
  } else {
    own.swap(sink);
  }
  function_.reset();
}

bool CallState::cancel(bool also_started) noexcept {
  CallArguments arguments;
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    std::uint8_t seen = state_.load(std::memory_order_acquire);
    do {
      if (!is_under_way(seen) || (phase_of(seen) == Phase::running && !also_started)) return false;
    } while (!state_.compare_exchange_weak(seen, Phase::cancelled, std::memory_order_acq_rel));
    if (phase_of(seen) == Phase::waiting) arguments = std::move(arguments_);
    watch.swap(watch_);
  }
  while (Task task = take_task()) {
    try {
      task();
    } catch (const std::bad_alloc&) {  // NOLINT: the call stays where it is, and never runs
    }
  }
  if (watch) {
    watch->stop.request_stop();
    for (Promise<void>& promise : watch->promises)
      promise.set_value();
  }
  return true;
}

// Takes the task of one hook; empty: there is none. Collects no tasks, since there may be no memory
// when calls are cancelled.
Task CallState::take_task() noexcept {
  const std::lock_guard lock(mutex_);
  if (hooks_ == nullptr) return nullptr;
  CancelHook& hook = *std::exchange(hooks_, hooks_->next_);
  if (hooks_ != nullptr) hooks_->previous_ = nullptr;
  hook.attached_ = false;
  return hook.task();
}

// The caller must hold the lock.
CallState::Watch& CallState::watch() {
  if (!watch_) watch_ = std::make_unique<Watch>();
  return *watch_;
}

std::stop_token CallState::stop_token() {
  const std::lock_guard lock(mutex_);
  const std::uint8_t state = look();
  if (phase_of(state) == Phase::cancelled) {
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
  const std::uint8_t state = look();
  if (phase_of(state) == Phase::cancelled) return make_ready_future();
  if (!is_under_way(state)) {
    return make_failed_future<void>(
        BrokenPromise("the call was answered and can no longer be cancelled"));
  }
  return watch().promises.emplace_back().get_future();
}

}  // namespace batchrpc::detail
