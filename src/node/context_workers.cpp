#include "node/context_workers.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <utility>

#include "base/time.hpp"
#include "node/output_scope.hpp"

namespace batchrpc {

ContextWorkers::ContextWorkers(asio::io_context& io, std::shared_ptr<WaitContext> context)
    : io_(io), context_(std::move(context)) {}

// The tasks stay here: the context may keep what is posted for longer than the node lives.
void ContextWorkers::post(Task task) {
  if (!tasks_.push(std::move(task))) return;
  asio::post(io_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->run_next();
  });
}

void ContextWorkers::run_next() {
  const detail::Presence::Scope running(presence_);
  Task task = tasks_.pop();
  if (!task) return;  // stopped
  const OutputScope scope(context_);
  task();
  task = nullptr;
}

bool ContextWorkers::is_worker() const noexcept { return presence_.here() > 0; }

std::size_t ContextWorkers::stop(Duration grace) {
  tasks_.close();
  return presence_.wait_for_others(
      [this](Waiter& waiter, TimePoint deadline) { context_->wait(waiter, deadline); },
      after(context_->now(), grace));
}

}  // namespace batchrpc
