#include "cartpole_observer/observer_process.hpp"

#include <batchrpc/batchrpc.hpp>
#include <csignal>
#include <iostream>
#include <memory>

#include <batchrpc/base/interrupt.hpp>
#include "cartpole_observer/observer.hpp"
#include "common/process.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;

int run_observer(const GroupOptions& options) {
  // Ctrl-C reaches all processes of a terminal. An observer that the agent started ignores it,
  // because the agent ends its observers in good order.
  if (options.launched) std::signal(SIGINT, SIG_IGN);

  rpc::Node node(node_options(options));
  if (options.launched) outlive_parent();  // it notices now when the agent is gone
  const int rank = node.rank();
  const auto observer = std::make_shared<Observer>(
      node, rank - 1, options.seed + static_cast<std::uint64_t>(rank), options.gamma);
  auto ended = observer->ended();
  const batchrpc::InterruptHandler interrupts(
      [observer](int signal) { observer->end({.exit_code = 128 + signal, .reason = {}}); });
  const auto agent_is_gone = [observer](const std::string& why) {
    observer->end({.exit_code = 1, .reason = "the agent was lost: " + why});
  };
  node.on_membership([agent_is_gone](const rpc::MembershipChange& change) {
    if (!change.joined && change.peer.name == kAgentName) agent_is_gone(change.reason);
  });
  for (const rpc::PeerInfo& peer : node.peers()) {
    const bool lost = peer.state == rpc::PeerState::lost;
    if (lost && peer.name == kAgentName) agent_is_gone("it was lost while this node was joining");
  }

  node.expose<&Observer::run_episode>(observer, {.short_handler = true});
  node.expose<&Observer::finish>(observer, {.short_handler = true});
  node.expose<&Observer::ready>(observer, {.short_handler = true});

  const ObserverEnd end = std::move(ended).get();
  // Written in one piece, because other processes write to the same terminal.
  if (!end.reason.empty()) std::cerr << node.name() + ": " + end.reason + "\n" << std::flush;
  if (end.exit_code != 0) node.shutdown(rpc::Duration::zero());  // no caller waits for its work
  return end.exit_code;
}

}  // namespace batchrpc_examples
