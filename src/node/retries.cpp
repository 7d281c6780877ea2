#include "node/retries.hpp"

#include <utility>

#include "node/retried_call.hpp"
#include "session/flush_scope.hpp"

namespace batchrpc {

Retries::Retries(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context,
                 std::uint64_t seed)
    : loop_(std::move(loop)), context_(std::move(context)), random_(seed) {}

std::uint64_t Retries::begin_call() {
  const std::lock_guard lock(mutex_);
  budget_.add_call();
  return next_number_++;
}

bool Retries::take_from_budget() {
  const std::lock_guard lock(mutex_);
  return budget_.take();
}

Duration Retries::with_jitter(Duration pause) {
  const std::lock_guard lock(mutex_);
  const double factor = std::uniform_real_distribution(0.8, 1.2)(random_);
  return std::chrono::duration_cast<Duration>(pause * factor);
}

bool Retries::pause(std::shared_ptr<RetriedCall> call, TimePoint when) {
  const std::uint64_t number = call->number();
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  // The reference is weak, since a loop that no longer runs must not keep the calls alive.
  const TimerId timer = loop_->schedule(when, [weak = weak_from_this(), number] {
    const auto self = weak.lock();
    const auto paused = self ? self->take_paused(number) : nullptr;
    if (!paused) return;
    const FlushScope scope(self->context_);
    paused->attempt();
  });
  paused_[number] = {.call = std::move(call), .timer = timer};
  return true;
}

std::shared_ptr<RetriedCall> Retries::take_paused(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto node = paused_.extract(number);
  if (!node) return nullptr;
  loop_->cancel(node.mapped().timer);
  return std::move(node.mapped().call);
}

bool Retries::is_idle() {
  const std::lock_guard lock(mutex_);
  return paused_.empty();
}

std::vector<std::string> Retries::close() {
  std::map<std::uint64_t, Paused> paused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    paused.swap(paused_);
  }
  std::map<std::string, std::size_t> counts;
  for (auto& [number, entry] : paused) {
    loop_->cancel(entry.timer);
    ++counts[entry.call->text()];
  }
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [text, count] : counts) {
    texts.push_back(text + (count > 1 ? " (" + std::to_string(count) + " calls)" : "") +
                    ", waiting to be retried");
  }
  for (auto& [number, entry] : paused)
    entry.call->shut_down();
  return texts;
}

}  // namespace batchrpc
