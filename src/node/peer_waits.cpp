#include "node/peer_waits.hpp"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "call/duration_text.hpp"

namespace batchrpc {
namespace {

std::string why_absent(const std::string& peer, const std::optional<PeerInfo>& found) {
  if (!found) return "peer '" + peer + "' did not join";
  const std::string& why = found->last_error;
  return "peer '" + peer + "' is lost" + (why.empty() ? "" : " (" + why + ")") +
         " and did not come back";
}

}  // namespace

Future<PeerInfo> PeerWaits::wait(std::string peer, Duration timeout,  // NOLINT: once for a wait
                                 std::weak_ptr<const void> owner) {
  Wait wait{.peer = peer, .promise = {}, .timer = 0};
  auto future = wait.promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      wait.promise.set_error(ShutDown("node " + node_ + " is shut down; make a new one"));
      return future;
    }
    const std::uint64_t number = next_number_++;
    wait.timer = loop_->schedule(after(loop_->now(), timeout),
                                 [this, owner = std::move(owner), number, timeout] {
                                   if (const auto alive = owner.lock()) time_out(number, timeout);
                                 });
    waits_.emplace(number, std::move(wait));
  }
  end(peer);
  peers_.seek(peer);
  return future;
}

std::optional<PeerWaits::Wait> PeerWaits::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto node = waits_.extract(number);
  if (!node) return std::nullopt;
  return std::move(node.mapped());
}

void PeerWaits::time_out(std::uint64_t number, Duration timeout) {
  auto late = take(number);
  if (!late) return;
  late->promise.set_error(TimedOut(
      why_absent(late->peer, peers_.info(late->peer)) + " within " + text_of(timeout), false));
}

void PeerWaits::seek() const {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, wait] : waits_)
      names.insert(wait.peer);
  }
  for (const std::string& name : names)
    peers_.seek(name);
}

void PeerWaits::end(const std::string& peer) {
  const std::optional<PeerInfo> found = peers_.info(peer);
  if (!found || found->state == PeerState::lost) return;
  std::vector<Wait> over;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = waits_.begin(); at != waits_.end();) {
      if (at->second.peer == peer) {
        loop_->cancel(at->second.timer);
        over.push_back(std::move(at->second));
        at = waits_.erase(at);
      } else {
        ++at;
      }
    }
  }
  for (Wait& wait : over)
    wait.promise.set_value(*found);
}

void PeerWaits::close() {
  std::map<std::uint64_t, Wait> waits;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waits.swap(waits_);
  }
  for (auto& [number, wait] : waits) {
    loop_->cancel(wait.timer);
    wait.promise.set_error(
        ShutDown("node " + node_ + " was shut down while it waited for peer " + wait.peer));
  }
}

}  // namespace batchrpc
