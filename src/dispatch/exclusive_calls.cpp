#include "dispatch/exclusive_calls.hpp"

#include <utility>

namespace batchrpc {

ExclusiveCalls::ExclusiveCalls(std::shared_ptr<Executor> loop_tasks,
                               std::shared_ptr<Executor> workers,
                               std::shared_ptr<AdmissionQueue> queue)
    : loop_tasks_(std::move(loop_tasks)), workers_(std::move(workers)), queue_(std::move(queue)) {}

void ExclusiveCalls::add(DispatchedCall dispatched) {
  const std::shared_ptr<AsyncMutex> exclusive = dispatched.function->options.exclusive;
  const detail::Ref<detail::CallState> state =
      detail::ContextAccess::call(dispatched.call.context());
  std::exception_ptr closed;
  bool is_first = false;
  bool cancelled = false;
  Key key{exclusive.get(), 0};
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (!closed) {
      key.second = next_++;
      auto hook = std::make_unique<Hook>(weak_from_this(), key);
      cancelled = !hook->attach(state);
      const auto [line, added] = lines_.try_emplace(exclusive.get(), Line{.lock = exclusive});
      is_first = added;
      line->second.calls.try_emplace(key.second, Waiting{std::move(dispatched), std::move(hook)});
    }
  }
  if (closed) {
    dispatched.call.refuse(closed);
    return;
  }
  if (cancelled) drop(key);
  if (is_first) ask_for(*exclusive);
}

// The calls stay here, so that the node can end without waiting for the lock.
void ExclusiveCalls::ask_for(AsyncMutex& mutex) {
  mutex.lock().then([weak = weak_from_this(), asked = &mutex](AsyncMutex::Guard lock) {
    if (const auto self = weak.lock()) self->granted(asked, std::move(lock));
  });
}

void ExclusiveCalls::granted(AsyncMutex* mutex, AsyncMutex::Guard lock) {
  std::map<std::uint64_t, Waiting>::node_type next;
  std::map<AsyncMutex*, Line>::node_type last;  // destroyed without the lock
  std::shared_ptr<AsyncMutex> asked_again;
  {
    const std::lock_guard waiting(mutex_);
    const auto line = lines_.find(mutex);
    if (line == lines_.end()) return;
    auto& calls = line->second.calls;
    if (!calls.empty()) next = calls.extract(calls.begin());
    if (calls.empty()) {
      last = lines_.extract(line);
    } else {
      asked_again = line->second.lock;
    }
  }
  if (asked_again) ask_for(*asked_again);
  if (!next) return;
  DispatchedCall& taken = next.mapped().dispatched;
  taken.call.hold(std::move(lock));
  if (taken.call.permit() != nullptr) {
    queue_->run(std::move(taken));
    return;
  }
  const auto& executor = taken.function->options.short_handler ? loop_tasks_ : workers_;
  executor->post([call = std::move(taken)]() mutable { call.run(); });
}

void ExclusiveCalls::drop(const Key& key) {
  std::map<std::uint64_t, Waiting>::node_type dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(key.first);
  if (line != lines_.end()) dropped = line->second.calls.extract(key.second);
}

void ExclusiveCalls::close(const std::exception_ptr& error) {
  std::map<AsyncMutex*, Line> lines;
  {
    const std::lock_guard lock(mutex_);
    closed_ = error;
    lines.swap(lines_);
  }
  for (auto& [mutex, line] : lines) {
    for (auto& [number, waiting] : line.calls)
      waiting.dispatched.call.refuse(error);
  }
}

}  // namespace batchrpc
