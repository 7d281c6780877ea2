#include "dispatch/context_workers.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <utility>

#include "base/stack_use.hpp"
#include "base/time.hpp"
#include "session/flush_scope.hpp"

namespace batchrpc {

ContextWorkers::ContextWorkers(asio::io_context& io, std::shared_ptr<WaitContext> context)
    : io_(io), context_(std::move(context)), look_(io) {}

// The tasks stay here, since the context may keep posted handlers for longer than the node lives.
void ContextWorkers::post(Task task) {
  if (tasks_.push(std::move(task))) come_for_one();
}

void ContextWorkers::come_for_one() {
  asio::post(io_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->run_next();
  });
}

// Asks for a thread for one of the put-off tasks. Another thread may be free by now, or a task of
// this thread has ended.
void ContextWorkers::come_for_one_put_off() {
  int put_off = put_off_;
  while (put_off > 0 && !put_off_.compare_exchange_weak(put_off, put_off - 1)) {
  }
  if (put_off > 0) come_for_one();
}

void ContextWorkers::look_later() {
  if (looking_.exchange(true)) return;
  look_.expires_after(std::chrono::milliseconds(1));
  look_.async_wait([weak = weak_from_this()](const asio::error_code&) {
    const auto self = weak.lock();
    if (!self) return;
    self->looking_ = false;
    self->come_for_one_put_off();
  });
}

void ContextWorkers::run_next() {
  const std::size_t nested = presence_.here();
  if (nested >= std::size_t{kMaxNestedTasks} || (nested > 0 && is_half_of_stack_used())) {
    ++put_off_;
    look_later();
    return;
  }
  struct Room {
    ~Room() { workers.come_for_one_put_off(); }
    ContextWorkers& workers;
  };
  const Room room{*this};  // asks again when the task has ended
  come_for_one_put_off();
  const detail::Presence::Scope running(presence_);
  Task task = tasks_.pop();
  if (!task) return;  // stopped
  const FlushScope scope(context_);
  task();
  task = nullptr;
}

bool ContextWorkers::is_worker() const noexcept { return presence_.here() > 0; }

std::size_t ContextWorkers::stop(Duration grace) {
  tasks_.close();
  return presence_.wait_for_others(after(context_->now(), grace));
}

}  // namespace batchrpc
