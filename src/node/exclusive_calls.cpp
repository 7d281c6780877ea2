#include "node/exclusive_calls.hpp"

#include <utility>

namespace batchrpc {

ExclusiveCalls::ExclusiveCalls(std::shared_ptr<Executor> loop_tasks,
                               std::shared_ptr<Executor> workers, std::shared_ptr<CallQueue> queue)
    : loop_tasks_(std::move(loop_tasks)), workers_(std::move(workers)), queue_(std::move(queue)) {}

void ExclusiveCalls::add(std::shared_ptr<NodeCore> core,
                         std::shared_ptr<detail::ExposedFunction> function,
                         detail::IncomingCall call) {
  const std::shared_ptr<AsyncMutex> exclusive = function->options.exclusive;
  std::uint64_t number = 0;
  std::exception_ptr closed;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    number = next_++;
    if (!closed) {
      calls_.try_emplace(number, Call{std::move(core), std::move(function), std::move(call)});
    }
  }
  if (closed) {
    call.fail(closed);
    return;
  }
  // The call stays here, so that the node's end need not wait for the lock.
  exclusive->lock().then([weak = weak_from_this(), number](AsyncMutex::Guard lock) {
    if (const auto self = weak.lock()) self->granted(number, std::move(lock));
  });
}

void ExclusiveCalls::granted(std::uint64_t number, AsyncMutex::Guard lock) {
  std::map<std::uint64_t, Call>::node_type found;
  {
    const std::lock_guard waiting(mutex_);
    found = calls_.extract(number);
  }
  if (!found) return;
  Call& taken = found.mapped();
  taken.call.hold(std::move(lock));
  if (taken.call.place() != nullptr) {
    queue_->run(std::move(taken.core), std::move(taken.function), std::move(taken.call));
    return;
  }
  const auto& executor = taken.function->options.short_handler ? loop_tasks_ : workers_;
  executor->post([core = std::move(taken.core), function = std::move(taken.function),
                  call = std::move(taken.call)]() mutable {
    const detail::CurrentNode current(core);
    function->run(call);
  });
}

void ExclusiveCalls::close(const std::exception_ptr& error) {
  std::map<std::uint64_t, Call> calls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = error;
    calls.swap(calls_);
  }
  for (auto& [number, waiting] : calls)
    waiting.call.fail(error);
}

}  // namespace batchrpc
