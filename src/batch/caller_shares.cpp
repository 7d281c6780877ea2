#include "batch/caller_shares.hpp"

#include <string_view>
#include <tuple>

namespace batchrpc::detail {

void CallerShares::add(const BatchCall& call) {
  Share& share = shares_[call.caller.get()];
  share.rows += call.rows;
  share.bytes += call.bytes;
}

void CallerShares::remove(const BatchCall& call) {
  const auto at = shares_.find(call.caller.get());
  at->second.rows -= call.rows;
  at->second.bytes -= call.bytes;
  if (at->second.rows == 0 && shares_.size() > kKept) shares_.erase(at);
}

// If several have the most, returns the same one in each run, wherever they are in memory.
CallerShares::Greediest CallerShares::greediest(Measure of) const {
  const auto identity = [](const PeerIdentity* caller) {
    return caller == nullptr
               ? std::tuple(-2, std::string_view(), std::uint64_t{0})
               : std::tuple(caller->rank, std::string_view(caller->name), caller->incarnation);
  };
  Greediest most;
  for (const auto& [caller, share] : shares_) {  // callers without a share may be gone
    const std::size_t has = share.*of;
    if (has == 0 || has < most.has) continue;
    if (has > most.has || identity(most.caller) < identity(caller)) most = {caller, has};
  }
  return most;
}

std::size_t CallerShares::amount(const PeerIdentity* caller, Measure of) const {
  const auto at = shares_.find(caller);
  return at == shares_.end() ? 0 : at->second.*of;
}

std::size_t CallerShares::amount(const BatchCall& call, Measure of) noexcept {
  return Share{.rows = call.rows, .bytes = call.bytes}.*of;
}

// Keeps the newest calls that free the excess, or none if that would take more than `beyond_fair`.
// Only the last one may free more than is needed.
void CallerShares::keep_newest(std::vector<const BatchCall*>& calls, Measure of, std::size_t excess,
                               std::size_t beyond_fair) {
  std::sort(calls.begin(), calls.end(),
            [](const BatchCall* a, const BatchCall* b) { return a->number > b->number; });
  std::size_t count = 0;
  std::size_t freed = 0;
  while (freed < excess && freed < beyond_fair && count < calls.size())
    freed += amount(*calls[count++], of);
  calls.resize(freed >= excess && freed <= beyond_fair ? count : 0);
}

}  // namespace batchrpc::detail
