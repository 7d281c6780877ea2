#include "session/in_flight_calls.hpp"

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

void InFlightCalls::link(Link& first, detail::CallState& call) noexcept {
  call.next_kept_ = first;
  if (first != nullptr) first->link_to_it_ = &call.next_kept_;
  call.link_to_it_ = &first;
  first = &call;
}

void InFlightCalls::resize(std::size_t buckets) {
  auto old = std::exchange(buckets_, std::vector<Link>(buckets));
  for (Link call : old) {
    while (call != nullptr) {
      const Link next = call->next_kept_;
      link(buckets_[bucket_of(call->id)], *call);
      call = next;
    }
  }
}

bool InFlightCalls::add(detail::CallState& call) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  if (size_ >= buckets_.size()) resize(buckets_.empty() ? kFewestBuckets : 2 * buckets_.size());
  ++size_;
  link(buckets_[bucket_of(call.id)], call);
  call.came_before_ = last_;
  (last_ != nullptr ? last_->next_come_ : first_) = &call;
  last_ = &call;
  return true;
}

void InFlightCalls::remove(const detail::CallState& call) {
  const std::lock_guard lock(mutex_);
  if (call.link_to_it_ != nullptr) unlink(**call.link_to_it_);
}

detail::Ref<detail::CallState> InFlightCalls::take(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (closed_ || buckets_.empty()) return nullptr;
  Link at = buckets_[bucket_of(id)];
  while (at != nullptr && at->id != id)
    at = at->next_kept_;
  if (at == nullptr) return nullptr;
  auto call = detail::Ref<detail::CallState>::share(*at);
  unlink(*at);
  return call;
}

std::vector<detail::Ref<detail::CallState>> InFlightCalls::all() {
  std::vector<detail::Ref<detail::CallState>> all;
  const std::lock_guard lock(mutex_);
  all.reserve(size_);
  for (Link call = first_; call != nullptr; call = call->next_come_)
    all.push_back(detail::Ref<detail::CallState>::share(*call));
  return all;
}

void InFlightCalls::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

detail::Ref<detail::CallState> InFlightCalls::take_next() noexcept {
  const std::lock_guard lock(mutex_);
  if (!closed_ || first_ == nullptr) return nullptr;
  auto call = detail::Ref<detail::CallState>::share(*first_);
  unlink(*call);
  return call;
}

// Frees the memory of a burst of calls.
void InFlightCalls::unlink(detail::CallState& call) noexcept {
  constexpr std::size_t kKept = 4096;
  if (call.next_kept_ != nullptr) call.next_kept_->link_to_it_ = call.link_to_it_;
  *std::exchange(call.link_to_it_, nullptr) = std::exchange(call.next_kept_, nullptr);
  (call.came_before_ != nullptr ? call.came_before_->next_come_ : first_) = call.next_come_;
  (call.next_come_ != nullptr ? call.next_come_->came_before_ : last_) = call.came_before_;
  call.came_before_ = call.next_come_ = nullptr;
  if (--size_ == 0 && buckets_.size() > kKept) buckets_ = std::vector<Link>();
}

}  // namespace batchrpc
