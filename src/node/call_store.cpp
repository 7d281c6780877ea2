#include "node/call_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace batchrpc {

// A record that does not fit is destroyed without the lock.
void CallStore::add(CallRecord&& record) noexcept {
  const std::size_t events = detail::events_of(record);
  const std::lock_guard lock(mutex_);
  if (events_ + events > max_events_) {
    left_out_ += events;
    return;
  }
  events_ += events;
  calls_.push_back(std::move(record));
}

std::vector<CallRecord> CallStore::copy(std::size_t first, std::size_t max_events) const {
  const std::lock_guard lock(mutex_);
  std::vector<CallRecord> copied;
  std::size_t events = 0;
  for (std::size_t i = first; i < calls_.size() && (events < max_events || copied.empty()); ++i) {
    events += detail::events_of(calls_[i]);
    copied.push_back(calls_[i]);
  }
  return copied;
}

std::vector<CallRecord> CallStore::copy() const {
  return copy(0, std::numeric_limits<std::size_t>::max());
}

std::size_t CallStore::size() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

std::uint64_t CallStore::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

}  // namespace batchrpc
