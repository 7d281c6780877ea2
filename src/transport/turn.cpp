#include "transport/turn.hpp"

namespace batchrpc::detail {

bool Turn::begin() {
  const std::lock_guard lock(mutex_);
  if (taken_) return false;
  taken_ = true;
  holder_ = std::this_thread::get_id();
  return true;
}

// Who comes back from a pause goes first: it has begun before all others.
void Turn::end() {
  std::unique_lock lock(mutex_);
  while (resuming_ == 0 && !tasks_.empty()) {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  holder_ = std::thread::id();
  if (resuming_ > 0) {
    handed_ = true;
    handed_over_.notify_one();
  } else {
    taken_ = false;
  }
}

void Turn::resume() {
  std::unique_lock lock(mutex_);
  if (taken_) {
    ++resuming_;
    handed_over_.wait(lock, [this] { return handed_; });
    --resuming_;
    handed_ = false;
  }
  taken_ = true;
  holder_ = std::this_thread::get_id();
}

Turn::Pause::Pause(Turn& turn) : turn_(turn.is_mine() ? &turn : nullptr) {
  if (turn_ != nullptr) turn_->end();
}

Turn::Pause::~Pause() {
  if (turn_ != nullptr) turn_->resume();
}

}  // namespace batchrpc::detail
