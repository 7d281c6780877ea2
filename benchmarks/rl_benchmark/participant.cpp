#include "rl_benchmark/participant.hpp"

#include <torch/torch.h>

#include <batchrpc/torch.hpp>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "rl_benchmark/agent.hpp"
#include "rl_benchmark/observer.hpp"
#include "rl_benchmark/world.hpp"
#include "torch_settings/torch_settings.hpp"

namespace rl_benchmark {

namespace rpc = batchrpc;

namespace {

/// The end of this process's part, which the coordinator or its loss brings.
class Ending {
 public:
  void end(rpc::Result<bool> more) {
    const std::lock_guard lock(mutex_);
    if (ended_.pending()) ended_.set_result(std::move(more));
  }
  rpc::Future<bool> ended() { return ended_.get_future(); }

 private:
  std::mutex mutex_;
  rpc::Promise<bool> ended_;
};

}  // namespace

bool run_participant(const Setting& setting, int rank) {
  batchrpc_examples::use_one_torch_thread();
  torch::manual_seed(setting.seed + static_cast<std::uint64_t>(rank));
  const rpc::Node node(node_options(setting, rank));

  const auto ending = std::make_shared<Ending>();
  auto ended = ending->ended();
  const auto coordinator_is_lost = [ending](const std::string& why) {
    ending->end(std::make_exception_ptr(std::runtime_error("the coordinator is lost: " + why)));
  };
  node.on_membership([coordinator_is_lost](const rpc::MembershipChange& change) {
    if (!change.joined && change.peer.name == kCoordinator) coordinator_is_lost(change.reason);
  });
  for (const rpc::PeerInfo& peer : node.peers()) {
    if (peer.name == kCoordinator && peer.state == rpc::PeerState::lost)
      coordinator_is_lost(peer.last_error);
  }
  node.expose(kEnd, [ending](bool more) { ending->end(more); });

  if (is_agent(setting, rank)) {
    expose_agent(node, std::make_shared<Agent>(setting), setting, observers_of(setting, rank - 1));
  } else {
    const auto observer = std::make_shared<Observer>(node, setting, rank - 1 - setting.agents);
    node.expose(kStop, [observer] { observer->stop(); });
    node.expose<&Observer::run_episode>(observer, {.short_handler = true});
  }
  return std::move(ended).get();  // waiting, this thread drives the node
}

}  // namespace rl_benchmark
