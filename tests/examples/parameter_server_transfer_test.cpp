#include <c10/core/Allocator.h>
#include <torch/version.h>

#include <atomic>
#include <batchrpc/batchrpc.hpp>
#include <batchrpc/testing.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "parameter_server/parameter_server.hpp"
#include "parameter_server/server_functions.hpp"

namespace batchrpc_examples {
namespace parameter_server_transfer_test {

namespace rpc = batchrpc;
using namespace std::chrono_literals;

constexpr std::int64_t kElements = 4 << 20;
constexpr std::uint64_t kBytes = kElements * sizeof(float);
const rpc::NodeOptions kQuiet{.logging = {.level = rpc::LogLevel::off}};

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

// Counts the blocks of a model's size that tensors are made of while it lives. Those that were
// received are of the library's memory, below.
class LargeBlocks final : public c10::Allocator {
 public:
  LargeBlocks() { c10::SetAllocator(c10::kCPU, this, kPriority); }
  ~LargeBlocks() override { c10::SetAllocator(c10::kCPU, real_, kPriority); }
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
#endif
    count(bytes);
    return real_->allocate(bytes);
  }
#if TORCH_VERSION_MAJOR >= 2
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return real_->raw_deleter(); }

  static void count(std::size_t bytes) {
    if (bytes >= kBytes) blocks().fetch_add(1);
  }
  static int take() { return blocks().exchange(0); }

 private:
  static constexpr std::uint8_t kPriority = 1;
  static std::atomic<int>& blocks() {
    static std::atomic<int> count{0};
    return count;
  }
  c10::Allocator* const real_ = c10::GetAllocator(c10::kCPU);
};

std::uint64_t received_from(const rpc::Node& node, const std::string& name) {
  for (const rpc::PeerInfo& peer : node.peers()) {
    if (peer.name == name) return peer.bytes_received;
  }
  return 0;
}

TEST_CASE("A trainer that is killed while its gradient is on the way spoils nothing") {
  rpc::SimulatedWorld world(GENERATE(range(1U, 4U)));
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

TEST_CASE("Nothing of the size of a model is allocated in an iteration after the first") {
  rpc::SimulatedWorld world;
  const auto server = std::make_shared<ParameterServer>(
      ServerOptions{.trainers = 2}, at::zeros({kElements}), kElements,
      SgdOptions{.learning_rate = 1, .momentum = 0}, ServerEvents{});
  const rpc::Node root(world.options("server0", kQuiet));
  expose(root, server);
  FarTrainer a(world, 0);
  FarTrainer b(world, 1);
  std::vector<rpc::Future<TrainingStart>> joining;
  for (const FarTrainer* trainer : {&a, &b})
    joining.push_back(trainer->server.call<&ParameterServer::join>());
  for (auto& each : joining)
    each.get();
  const at::Tensor gradient = at::ones({kElements});
  const LargeBlocks counted;
  LargeBlocks::take();
  const at::Tensor copy = a.values.clone();
  CHECK(LargeBlocks::take() == 1);  // so they are counted
  fetch_model(a.server, a.values).get();
  CHECK(LargeBlocks::take() == 0);
  for (int iteration = 0; iteration < 4; ++iteration) {
    auto one = update_and_fetch_model(a.server, UpdateMode::batch, gradient, a.values);
    auto two = update_and_fetch_model(b.server, UpdateMode::batch, gradient, b.values);
    one.get();
    two.get();
    const int allocated = LargeBlocks::take();
    if (iteration > 0) CHECK(allocated == 0);
  }
  CHECK(b.values.eq(-4).all().item<bool>());
}

}  // namespace parameter_server_transfer_test
}  // namespace batchrpc_examples

void* operator new(std::size_t size, std::align_val_t alignment) {
  batchrpc_examples::parameter_server_transfer_test::LargeBlocks::count(size);
  const auto align = static_cast<std::size_t>(alignment);
  void* const memory = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
