#include <algorithm>
#include <utility>

#include "session/output_queue.hpp"

// Who wants to know when frames leave.
namespace batchrpc {

// Of frames that are in rounds.
std::vector<std::shared_ptr<FrameWatch>> OutputQueue::take_watches() {
  std::vector<std::shared_ptr<FrameWatch>> leaving;
  if (watches_.empty()) return leaving;
  const auto waits = [this](const Watched& watched) { return watched.place.begin >= taken_; };
  const auto first = std::find_if(watches_.begin(), watches_.end(), waits);
  for (auto at = watches_.begin(); at != first; ++at)
    leaving.push_back(std::move(at->watch));
  watches_.erase(watches_.begin(), first);
  return leaving;
}

}  // namespace batchrpc
