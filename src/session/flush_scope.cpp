#include "session/flush_scope.hpp"

#include <new>

#include "session/connection.hpp"

namespace batchrpc {

FlushScope*& FlushScope::innermost() noexcept {
  thread_local FlushScope* scope = nullptr;
  return scope;
}

FlushScope::FlushScope(std::shared_ptr<WaitContext> context)
    : wait_(std::move(context)), outer_(std::exchange(innermost(), this)) {}

FlushScope::~FlushScope() {
  flush();
  innermost() = outer_;
}

bool FlushScope::defer(Connection& connection) {
  FlushScope* scope = innermost();
  if (scope == nullptr) return false;
  // Flushing twice costs little, so looking at the last one is enough.
  if (scope->dirty_.empty() || scope->dirty_.back().get() != &connection) {
    scope->dirty_.push_back(connection.shared_from_this());
  }
  return true;
}

void FlushScope::flush_current() {
  for (FlushScope* scope = innermost(); scope != nullptr; scope = scope->outer_)
    scope->flush();
}

void FlushScope::flush() {
  // A flush may find the connection broken, and end calls whose continuations send more.
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    const std::shared_ptr<Connection> connection = dirty_[i];
    try {
      if (leave_to_loop_) {
        connection->flush_soon();
      } else {
        connection->flush();
      }
    } catch (const std::bad_alloc&) {  // NOLINT: its next output takes this along
    }
  }
  dirty_.clear();
}

}  // namespace batchrpc
