#include "node/node_host.hpp"

#include <utility>

namespace batchrpc {

NodeHost::NodeHost(NodeCore& core, std::string exposed_as, std::shared_ptr<AsyncMutex> exclusive)
    : core_(core.weak_from_this()),
      name_(core.name()),
      exposed_as_(std::move(exposed_as)),
      exclusive_(std::move(exclusive)),
      workers_(core.workers()),
      loop_tasks_(core.loop_tasks()),
      loop_(core.loop()),
      dead_after_(core.options().liveness.dead_after) {}

bool NodeHost::is_live(std::string_view peer) const {
  const auto core = core_.lock();
  return core && core->peers().is_live(peer);
}

bool NodeHost::is_current(const PeerIdentity& peer) const {
  const auto core = core_.lock();
  return core && core->peers().is_current(peer);
}

bool NodeHost::may_be_peer(std::string_view peer) const {
  const auto core = core_.lock();
  return !core || core->options().world_size == 0 || peer == name_ || core->peers().is_known(peer);
}

std::uint64_t NodeHost::on_change(std::function<void()> handler) {
  const auto core = core_.lock();
  if (!core) return 0;
  return core->on_change([handler = std::move(handler)](const PeerChange& change) {
    using Kind = PeerChange::Kind;
    if (change.kind == Kind::joined || change.kind == Kind::lost) handler();
  });
}

std::uint64_t NodeHost::on_end(std::function<void()> handler) {
  const auto core = core_.lock();
  if (!core) return 0;
  return core->on_change([handler = std::move(handler)](const PeerChange& change) {
    if (change.kind == PeerChange::Kind::ended) handler();
  });
}

void NodeHost::forget(std::uint64_t number) {
  if (const auto core = core_.lock()) core->forget_handler(number);
}

std::uint64_t NodeHost::on_metrics(BatcherStatistics statistics) {
  const auto core = core_.lock();
  return core ? core->batchers().add(exposed_as_, std::move(statistics)) : 0;
}

void NodeHost::forget_metrics(std::uint64_t number, BatcherMetrics last) {
  if (const auto core = core_.lock()) core->batchers().remove(number, std::move(last));
}

}  // namespace batchrpc
