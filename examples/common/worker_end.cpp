#include "common/worker_end.hpp"

#include <atomic>
#include <batchrpc/base/error.hpp>
#include <chrono>
#include <memory>

namespace batchrpc_examples {

namespace rpc = batchrpc;

namespace {

constexpr const char* kFinish = "finish";  // void()

}  // namespace

WorkerEnd::WorkerEnd(const rpc::Node& node, const std::string& employer) {
  const auto ended = std::make_shared<rpc::Promise<void>>();
  const auto once = std::make_shared<std::atomic<bool>>(false);
  ended_ = ended->get_future();
  const auto end = [ended, once] {
    if (!once->exchange(true)) ended->set_value();
  };
  node.expose(kFinish, end);
  node.on_membership([end, employer](const rpc::MembershipChange& change) {
    if (!change.joined && change.peer.name == employer) end();
  });
  for (const rpc::PeerInfo& peer : node.peers()) {  // the employer may have been lost before
    if (peer.name == employer && peer.state == rpc::PeerState::lost) end();
  }
}

void finish_workers(const rpc::Node& node, const std::vector<std::string>& workers,
                    rpc::Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::vector<rpc::Future<void>> told;
  for (const std::string& name : workers) {
    try {
      told.push_back(node.call<void()>(name, kFinish));
    } catch (const rpc::Error&) {  // the worker is gone
    }
  }
  for (rpc::Future<void>& heard : told)
    heard.wait_until(deadline);
}

}  // namespace batchrpc_examples
