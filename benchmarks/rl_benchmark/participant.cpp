#include "rl_benchmark/participant.hpp"

#include <torch/torch.h>

#include <atomic>
#include <batchrpc/torch.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "rl_benchmark/agent.hpp"
#include "rl_benchmark/observer.hpp"
#include "rl_benchmark/world.hpp"
#include "torch_settings/torch_settings.hpp"

namespace rl_benchmark {

namespace rpc = batchrpc;

namespace {

/// The end of this process's part, caused by the coordinator or by its loss.
class Ending {
 public:
  void end(rpc::Result<bool> more) {
    if (!has_ended_.exchange(true)) ended_.set_result(std::move(more));
  }
  void coordinator_is_gone(const std::string& why) {
    end(std::make_exception_ptr(std::runtime_error("the coordinator is lost: " + why)));
    if (!is_gone_.exchange(true)) gone_.set_value();
  }
  rpc::Future<bool> ended() { return ended_.get_future(); }
  rpc::Future<void> gone() { return gone_.get_future(); }

 private:
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_gone_{false};
  rpc::Promise<bool> ended_;
  rpc::Promise<void> gone_;
};

}  // namespace

bool run_participant(const Setting& setting, int rank) {
  batchrpc_examples::use_one_torch_thread();
  torch::manual_seed(setting.seed + static_cast<std::uint64_t>(rank));
  const rpc::Node node(node_options(setting, rank));

  const auto ending = std::make_shared<Ending>();
  auto ended = ending->ended();
  const auto gone = ending->gone();
  node.on_membership([ending](const rpc::MembershipChange& change) {
    if (!change.joined && change.peer.name == kCoordinator)
      ending->coordinator_is_gone(change.reason);
  });
  for (const rpc::PeerInfo& peer : node.peers()) {
    if (peer.name == kCoordinator && peer.state == rpc::PeerState::lost)
      ending->coordinator_is_gone(peer.last_error);
  }
  node.expose(kEnd, [ending](bool more) { ending->end(more); });

  if (is_agent(setting, rank)) {
    expose_agent(node, std::make_shared<Agent>(setting), setting, observers_of(setting, rank - 1));
  } else {
    const auto observer = std::make_shared<Observer>(node, setting, rank - 1 - setting.agents);
    node.expose(kStop, [observer] { observer->stop(); });
    node.expose<&Observer::run_episode>(observer, {.short_handler = true});
  }
  const bool more = std::move(ended).get();  // while it waits, this thread drives the node
  // A process that joins the next run while the present coordinator still listens would join the
  // present run.
  if (more) gone.wait_for(std::chrono::seconds(10));
  return more;
}

}  // namespace rl_benchmark
