#include <batchrpc/batchrpc.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "parameter_server/parameter_server.hpp"
#include "parameter_server/server_functions.hpp"

namespace batchrpc_examples {
namespace {

namespace rpc = batchrpc;
using namespace std::chrono_literals;

constexpr std::int64_t kElements = 4 << 20;
constexpr std::uint64_t kBytes = kElements * sizeof(float);
const rpc::NodeOptions kQuiet{.log_level = rpc::LogLevel::off};

struct FarTrainer {
  FarTrainer(rpc::SimulatedWorld& world, int index)
      : node(world.options("trainer" + std::to_string(index), kQuiet)),
        server(find_server(node, "server0")) {}

  rpc::Future<void> update(float gradient) {
    return update_and_fetch_model(server, UpdateMode::batch, at::full({kElements}, gradient),
                                  values);
  }

  rpc::Node node;
  rpc::RRef<ParameterServer> server;
  at::Tensor values = at::empty({kElements});
};

std::uint64_t received_from(const rpc::Node& node, const std::string& name) {
  for (const rpc::PeerInfo& peer : node.peers()) {
    if (peer.name == name) return peer.bytes_received;
  }
  return 0;
}

TEST_CASE("A trainer that is killed while its gradient is on the way spoils nothing") {
  rpc::SimulatedWorld world(GENERATE(range(1, 4)));
  world.network().set_link({.latency = 1ms, .bandwidth = 100'000'000});
  const auto server = std::make_shared<ParameterServer>(
      ServerOptions{.trainers = 3}, at::zeros({kElements}), kElements,
      SgdOptions{.learning_rate = 1, .momentum = 0}, ServerEvents{});
  const rpc::Node root(world.options("server0", kQuiet));
  root.on_membership([server](const rpc::MembershipChange& change) {
    if (!change.joined) {
      server->lose({change.peer.name, change.peer.rank, change.peer.incarnation});
    }
  });
  expose(root, server);
  FarTrainer killed(world, 0);
  FarTrainer a(world, 1);
  FarTrainer b(world, 2);
  std::vector<rpc::Future<TrainingStart>> joining;
  for (const FarTrainer* trainer : {&killed, &a, &b})
    joining.push_back(trainer->server.call<&ParameterServer::join>());
  for (auto& each : joining)
    each.get();

  const auto never = killed.update(1e9F);
  const bool alone = GENERATE(true, false);
  REQUIRE(world.run_until([&] { return received_from(root, "trainer0") > kBytes / 4; }));
  std::vector<rpc::Future<void>> updates;
  if (!alone) updates.push_back(a.update(1));
  REQUIRE(world.run_until([&] { return received_from(root, "trainer0") > kBytes / 2; }));
  CHECK(received_from(root, "trainer0") < kBytes);
  world.kill("trainer0");
  if (alone) updates.push_back(a.update(1));
  updates.push_back(b.update(3));
  for (auto& each : updates)
    each.get();
  CHECK(a.values.eq(-2).all().item<bool>());
  CHECK(b.values.eq(-2).all().item<bool>());
  CHECK_FALSE(never.ready());
}

}  // namespace
}  // namespace batchrpc_examples
