#include "dispatch/parked_calls.hpp"

#include <utility>

namespace batchrpc {

ParkedCalls::ParkedCalls(std::shared_ptr<Loop> loop, std::shared_ptr<Executor> runner,
                         const FunctionTable& functions)
    : loop_(std::move(loop)), runner_(std::move(runner)), functions_(functions) {}

// The caller must hold the mutex.
template <class Which>
std::vector<ParkedCalls::Call> ParkedCalls::take_if(const Which& which) {
  std::vector<Call> taken;
  std::vector<Call> others;
  for (Call& call : calls_)
    (which(call) ? taken : others).push_back(std::move(call));
  calls_ = std::move(others);
  return taken;
}

bool ParkedCalls::park(const std::string& function, detail::WaitingCall& call, RunAgain again) {
  std::vector<Call> ready;
  std::vector<Call> cancelled;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    if (calls_.size() >= kMost) {
      cancelled = take_if([](const Call& entry) { return entry.call.cancelled(); });
    }
    if (calls_.size() >= kMost || loop_->now() >= end_) return false;
    // If the function was exposed after the caller looked, exposed() has already looked for calls.
    auto& to = functions_.find(function) ? ready : calls_;
    to.push_back({function, std::move(call), std::move(again)});
  }
  run(std::move(ready));
  return true;
}

void ParkedCalls::exposed(std::string_view function) {
  std::vector<Call> ready;
  {
    const std::lock_guard lock(mutex_);
    ready = take_if([function](const Call& entry) { return entry.function == function; });
  }
  run(std::move(ready));
}

void ParkedCalls::run(std::vector<Call> calls) {
  for (Call& entry : calls) {
    runner_->post([again = std::move(entry.again), call = std::move(entry.call)]() mutable {
      again(std::move(call));
    });
  }
}

void ParkedCalls::expect_functions_until(TimePoint end) {
  const std::lock_guard lock(mutex_);
  if (end_ != TimePoint::max()) return;  // closed meanwhile
  end_ = end;
  timer_ = loop_->schedule(end, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    std::vector<Call> late;
    {
      const std::lock_guard waiting(self->mutex_);
      late.swap(self->calls_);
    }
    self->run(std::move(late));
  });
}

std::size_t ParkedCalls::size() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

void ParkedCalls::close(const std::exception_ptr& error) {
  std::vector<Call> calls;
  {
    const std::lock_guard lock(mutex_);
    end_ = TimePoint::min();
    if (timer_ != 0) loop_->cancel(timer_);
    calls.swap(calls_);
  }
  for (Call& entry : calls)
    entry.call.refuse(error);
}

}  // namespace batchrpc
