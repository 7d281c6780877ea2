#include "session/in_flight_calls.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/random_odd.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kFewestBuckets = 16;  // buckets

// Random in each process, since the peer chooses the ids.
std::uint64_t odd_multiplier() {
  static const std::uint64_t multiplier = random_odd();
  return multiplier;
}

}  // namespace

// Dietzfelbinger et al., "A Reliable Randomized Algorithm for the Closest-Pair Problem", 1997.
std::size_t InFlightCalls::bucket_of(std::uint64_t id) const noexcept {
  return (id * odd_multiplier()) >> (64 - std::countr_zero(buckets_.size()));
}

void InFlightCalls::resize(std::size_t buckets) {
  auto old = std::exchange(buckets_, std::vector<Link>(buckets));
  for (Link call : old) {
    while (call != nullptr) {
      Link& first = buckets_[bucket_of(call->id)];
      const Link next = std::exchange(call->next_kept_, first);
      first = std::exchange(call, next);
    }
  }
}

bool InFlightCalls::add(detail::CallState& call) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  if (size_ >= buckets_.size()) resize(buckets_.empty() ? kFewestBuckets : 2 * buckets_.size());
  ++size_;
  Link& first = buckets_[bucket_of(call.id)];
  call.next_kept_ = std::exchange(first, &call);
  return true;
}

void InFlightCalls::remove(const detail::CallState& call) {
  const std::lock_guard lock(mutex_);
  if (size_ == 0) return;
  Link* link = &buckets_[bucket_of(call.id)];
  while (*link != nullptr && *link != &call)
    link = &(*link)->next_kept_;
  if (*link != nullptr) unlink(*link);
}

detail::Ref<detail::CallState> InFlightCalls::take(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (size_ == 0) return nullptr;
  Link* link = &buckets_[bucket_of(id)];
  while (*link != nullptr && (*link)->id != id)
    link = &(*link)->next_kept_;
  if (*link == nullptr) return nullptr;
  auto call = detail::Ref<detail::CallState>::share(**link);
  unlink(*link);
  return call;
}

// Takes the lock. Closes the table if `and_close` is true. The order does not depend on the hash.
std::vector<detail::Ref<detail::CallState>> InFlightCalls::list(bool and_close) {
  std::vector<detail::Ref<detail::CallState>> all;
  {
    const std::lock_guard lock(mutex_);
    all.reserve(size_);
    for (Link call : buckets_) {
      for (; call != nullptr; call = call->next_kept_)
        all.push_back(detail::Ref<detail::CallState>::share(*call));
    }
    if (and_close) {
      closed_ = true;
      size_ = 0;
      buckets_ = std::vector<Link>();
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  return all;
}

// Frees the memory of a burst of calls.
void InFlightCalls::unlink(Link& link) {
  constexpr std::size_t kKept = 4096;
  link = std::exchange(link->next_kept_, nullptr);
  if (--size_ == 0 && buckets_.size() > kKept) buckets_ = std::vector<Link>();
}

}  // namespace batchrpc
