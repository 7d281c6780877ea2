#include "node/kept_calls.hpp"

#include <utility>

namespace batchrpc {

bool KeptCalls::add(const std::shared_ptr<detail::CallState>& call) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  calls_.try_emplace(call->id, call);
  return true;
}

// The call is not destroyed here: who calls has it.
void KeptCalls::remove(const detail::CallState& call) {
  const std::lock_guard lock(mutex_);
  const auto at = calls_.find(call.id);
  if (at == calls_.end() || at->second.get() != &call) return;
  calls_.erase(at);
  trim();
}

std::shared_ptr<detail::CallState> KeptCalls::take(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto at = calls_.find(id);
  if (at == calls_.end()) return nullptr;
  auto call = std::move(at->second);
  calls_.erase(at);
  trim();
  return call;
}

std::vector<std::shared_ptr<detail::CallState>> KeptCalls::close() {
  std::vector<std::shared_ptr<detail::CallState>> all;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  all.reserve(calls_.size());
  for (auto& [id, call] : calls_)
    all.push_back(std::move(call));
  calls_ = {};
  return all;
}

// Gives the memory of a burst back.
void KeptCalls::trim() {
  constexpr std::size_t kKeptBuckets = 4096;
  if (calls_.empty() && calls_.bucket_count() > kKeptBuckets) calls_ = {};
}

}  // namespace batchrpc
