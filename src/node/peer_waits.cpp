#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "call/duration_text.hpp"
#include "node/node_core.hpp"

// Futures of peers that are to join.
namespace batchrpc {
namespace {

std::string why_absent(const std::string& peer, const std::vector<PeerInfo>& peers) {
  const auto found =
      std::find_if(peers.begin(), peers.end(), [&](const auto& info) { return info.name == peer; });
  if (found == peers.end()) return "peer '" + peer + "' did not join";
  const std::string& why = found->last_error;
  return "peer '" + peer + "' is lost" + (why.empty() ? "" : " (" + why + ")") +
         " and was not back";
}

}  // namespace

Future<PeerInfo> NodeCore::wait_for_peer(std::string peer_name, Duration timeout) {
  fork_mark_->refuse_forked_copy(options_.name);
  WaitContext::suggest(context_);
  PeerWait wait{.name = peer_name, .promise = {}, .timer = 0};
  auto future = wait.promise.get_future();
  const bool is_itself = peer_name == options_.name;
  auto own_addresses = is_itself ? listening_->advertised() : std::vector<std::string>();
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      wait.promise.set_error(ShutDown("node " + options_.name + " is shut down; make a new one"));
      return future;
    }
    if (is_itself) {
      wait.promise.set_value({.name = peer_name,
                              .rank = rank(),
                              .incarnation = self_.incarnation,
                              .state = PeerState::connected,
                              .addresses = std::move(own_addresses)});
      return future;
    }
    const std::uint64_t number = next_handler_++;
    wait.timer = loop_->schedule(
        after(loop_->now(), timeout), [this, self = weak_from_this(), number, timeout] {
          const auto alive = self.lock();
          if (!alive) return;
          auto late = take_wait(number);
          if (!late) return;
          late->promise.set_error(TimedOut(
              why_absent(late->name, peers_->snapshot()) + " within " + text_of(timeout), false));
        });
    waits_.emplace(number, std::move(wait));
  }
  end_waits(peer_name);
  peers_->seek(peer_name);
  return future;
}

std::optional<NodeCore::PeerWait> NodeCore::take_wait(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto node = waits_.extract(number);
  if (!node) return std::nullopt;
  return std::move(node.mapped());
}

// Those that nobody calls would not be tried.
void NodeCore::seek_awaited() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, wait] : waits_)
      names.insert(wait.name);
  }
  for (const std::string& name : names)
    peers_->seek(name);
}

// Ends the waits for `peer`, if it is there.
void NodeCore::end_waits(const std::string& peer) {
  const auto peers = peers_->snapshot();
  const auto found = std::find_if(peers.begin(), peers.end(), [&](const PeerInfo& info) {
    return info.name == peer && info.state != PeerState::lost;
  });
  if (found == peers.end()) return;
  std::vector<PeerWait> over;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = waits_.begin(); at != waits_.end();) {
      if (at->second.name == peer) {
        loop_->cancel(at->second.timer);
        over.push_back(std::move(at->second));
        at = waits_.erase(at);
      } else {
        ++at;
      }
    }
  }
  for (PeerWait& wait : over)
    wait.promise.set_value(*found);
}

}  // namespace batchrpc
