#include "metrics/call_counters.hpp"

#include <new>

#include "metrics/node_counters.hpp"

namespace batchrpc {

FunctionCounters::~FunctionCounters() {
  for (const auto& own : own_)
    delete own.load(std::memory_order_relaxed);
}

CallCounts* FunctionCounters::make_own(std::size_t place) noexcept {
  if (shared_.calls.load(std::memory_order_relaxed) < kOfFew) return nullptr;
  auto* const made = new (std::nothrow) CallCounts;
  if (made != nullptr) own_[place].store(made, std::memory_order_release);
  return made;
}

CallMetrics FunctionCounters::snapshot() const {
  std::vector<const CallCounts*> all{&shared_};
  for (const auto& own : own_) {
    if (const CallCounts* const counts = own.load(std::memory_order_acquire)) all.push_back(counts);
  }
  return sum_of(all);
}

SessionCounts::Entry* SessionCounts::make(std::string_view name) {
  return entries_.emplace_back(std::make_unique<Entry>(name)).get();
}

SessionCounts::Entry* SessionCounts::define(std::string_view function, bool of_library) {
  const std::lock_guard lock(mutex_);
  if (of_library) {
    if (library_ == nullptr) library_ = make(kLibraryName);
    return library_;
  }
  if (entries_.size() < kMaxCountedNames) return make(function);
  if (other_ == nullptr) other_ = make(kOtherName);
  return other_;
}

void SessionCounts::name(std::string_view peer) {
  const std::lock_guard lock(mutex_);
  peer_ = peer;
}

std::string SessionCounts::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

std::uint64_t SessionCounts::calls_made() const {
  std::uint64_t made = 0;
  for (const Entry* const entry : entries()) {
    made += entry->calls.load(std::memory_order_acquire);
    if (entry->name != kLibraryName) made += entry->notifications.load(std::memory_order_acquire);
  }
  return made;
}

std::vector<const SessionCounts::Entry*> SessionCounts::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Entry*> entries;
  entries.reserve(entries_.size());
  for (const auto& entry : entries_)
    entries.push_back(entry.get());
  return entries;
}

CallsMade::CallsMade(NodeCounters* node) : node_(node) {
  if (node_ != nullptr) node_->enter(counts_);
}

CallsMade::~CallsMade() {
  if (node_ != nullptr) node_->leave(counts_);
}

}  // namespace batchrpc
