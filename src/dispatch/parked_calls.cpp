#include "dispatch/parked_calls.hpp"

#include <utility>

namespace batchrpc {

ParkedCalls::ParkedCalls(std::shared_ptr<Loop> loop, std::shared_ptr<Executor> runner,
                         const FunctionTable& functions)
    : loop_(std::move(loop)), runner_(std::move(runner)), functions_(functions) {}

bool ParkedCalls::park(const std::string& function, detail::WaitingCall& call, RunAgain again) {
  bool cancelled = false;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    // If the function was exposed after the caller looked, exposed() has already looked for calls.
    if (!functions_.find(function)) {
      if (calls_.size() >= kMost || loop_->now() >= end_) return false;
      number = next_++;
      auto hook = std::make_unique<Hook>(weak_from_this(), number);
      cancelled = !hook->attach(detail::ContextAccess::call(call.context()));
      const auto line = lines_.try_emplace(function).first;
      line->second.insert(number);
      calls_.try_emplace(number, Call{std::move(call), std::move(again), std::move(hook), line});
      if (!cancelled) return true;
    }
  }
  if (cancelled) {
    drop(number);
  } else {
    run_one(std::move(call), std::move(again));
  }
  return true;
}

// A call that waits was cancelled.
void ParkedCalls::drop(std::uint64_t number) {
  Calls::node_type dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = calls_.find(number);
  if (at == calls_.end()) return;
  const auto line = at->second.line;
  line->second.erase(number);
  if (line->second.empty()) lines_.erase(line);
  dropped = calls_.extract(at);
}

void ParkedCalls::exposed(std::string_view function) {
  Calls ready;
  {
    const std::lock_guard lock(mutex_);
    const auto line = lines_.find(function);
    if (line == lines_.end()) return;
    for (const std::uint64_t number : line->second)
      ready.insert(calls_.extract(number));
    lines_.erase(line);
  }
  run(std::move(ready));
}

void ParkedCalls::run(Calls&& calls) {
  for (auto& [number, entry] : calls)
    run_one(std::move(entry.call), std::move(entry.again));
}

void ParkedCalls::run_one(detail::WaitingCall call, RunAgain again) {
  runner_->post(
      [again = std::move(again), call = std::move(call)]() mutable { again(std::move(call)); });
}

void ParkedCalls::expect_functions_until(TimePoint end) {
  const std::lock_guard lock(mutex_);
  if (end >= end_) return;
  end_ = end;
  loop_->cancel(timer_);
  timer_ = loop_->schedule(end, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    Calls late;
    {
      const std::lock_guard waiting(self->mutex_);
      late.swap(self->calls_);
      self->lines_.clear();
    }
    self->run(std::move(late));
  });
}

std::size_t ParkedCalls::size() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

void ParkedCalls::close(const std::exception_ptr& error) {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    end_ = TimePoint::min();
    loop_->cancel(timer_);
    calls.swap(calls_);
    lines_.clear();
  }
  for (auto& [number, entry] : calls)
    entry.call.refuse(error);
}

}  // namespace batchrpc
