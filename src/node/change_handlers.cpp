#include "node/change_handlers.hpp"

#include <algorithm>
#include <exception>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

std::uint64_t ChangeHandlers::add(LocalNode::ChangeHandler handler) {
  const std::lock_guard lock(mutex_);
  handlers_.emplace_back(next_number_,
                         std::make_shared<LocalNode::ChangeHandler>(std::move(handler)));
  return next_number_++;
}

void ChangeHandlers::remove(std::uint64_t number) {
  std::shared_ptr<LocalNode::ChangeHandler> removed;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(handlers_.begin(), handlers_.end(),
                               [&](const auto& entry) { return entry.first == number; });
  if (at == handlers_.end()) return;
  removed = std::move(at->second);
  handlers_.erase(at);
}

void ChangeHandlers::call(const PeerChange& change) const {
  std::vector<std::shared_ptr<LocalNode::ChangeHandler>> handlers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, handler] : handlers_)
      handlers.push_back(handler);
  }
  for (const auto& handler : handlers) {
    try {
      (*handler)(change);
    } catch (...) {
      log_.error("a handler of membership changes threw: " + describe(std::current_exception()));
    }
  }
}

}  // namespace batchrpc
