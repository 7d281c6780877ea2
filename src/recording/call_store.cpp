#include "recording/call_store.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace batchrpc {
namespace {

// The calls and operators that are copied or counted while a thread that adds a call waits.
constexpr std::size_t kAtOnce = 1000;

}  // namespace

// A record that does not fit is destroyed without the lock.
void CallStore::add(CallRecord&& record) noexcept {
  if (!operators_) detail::leave_out_operators(record);  // another sink may have wanted them
  const std::size_t events = detail::events_of(record);
  const std::lock_guard lock(mutex_);
  if (events_ + events > max_events_) {
    left_out_ += detail::all_events_of(record);
    return;
  }
  try {
    calls_.push_back(std::move(record));
    events_ += events;
  } catch (const std::bad_alloc&) {
    left_out_ += detail::all_events_of(record);
  }
}

void CallStore::lost(std::size_t events) noexcept {
  const std::lock_guard lock(mutex_);
  left_out_ += events;
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
  std::vector<CallRecord> all;
  for (;;) {
    std::vector<CallRecord> part = copy(all.size(), kAtOnce);
    if (part.empty()) return all;
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
}

std::size_t CallStore::size() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

std::uint64_t CallStore::events(std::size_t first) const {
  std::uint64_t events = 0;
  for (std::size_t i = first;;) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t until = events + kAtOnce;
    for (; i < calls_.size() && events < until; ++i)
      events += detail::all_events_of(calls_[i]);
    if (i >= calls_.size()) return events;
  }
}

std::uint64_t CallStore::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

}  // namespace batchrpc
