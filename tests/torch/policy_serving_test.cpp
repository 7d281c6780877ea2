#include "batchrpc/batchrpc.hpp"
#include "batchrpc/torch/policy_batcher.hpp"
#include "node/virtual_world.hpp"
#include "torch/policy_backend.hpp"
#include "torch/policy_networks.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace policy_serving_test {

using Catch::Matchers::Contains;
using torch_test::identical;
using torch_test::kFourFloats;
using torch_test::message_of;
using torch_test::Mlp;

/// Doubles its observations, and keeps the sizes of its batches.
class Doubling final : public detail::PolicyBackend {
 public:
  explicit Doubling(std::shared_ptr<std::vector<std::int64_t>> batches)
      : batches_(std::move(batches)) {}
  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    batches_->push_back(observations.size(0));
    return {observations * 2, observations.sum(1)};
  }
  void prepare(const detail::NamedTensors& /*weights*/) override {}
  void apply() override {}

 private:
  std::shared_ptr<std::vector<std::int64_t>> batches_;
};

struct FixedSizes {
  explicit FixedSizes(std::vector<std::size_t> sizes) {
    detail::LoadedPolicy loaded;
    loaded.backend = std::make_unique<Doubling>(batches);
    loaded.source = "a test";
    loaded.info.kind = PolicyKind::compiled;
    loaded.info.batch_sizes = std::move(sizes);
    loaded.info.observation = kFourFloats;
    policy = detail::serve_policy(std::move(loaded), {});
    warm_up = std::exchange(*batches, {});
  }
  std::shared_ptr<std::vector<std::int64_t>> batches =
      std::make_shared<std::vector<std::int64_t>>();
  std::vector<std::int64_t> warm_up;
  std::shared_ptr<Policy> policy;
};

TEST_CASE("a policy of fixed sizes runs with each before it is there", "[policy]") {
  CHECK(FixedSizes({1, 4}).warm_up == std::vector<std::int64_t>{1, 1, 1, 4, 4, 4});
}

TEST_CASE("with CUDA graphs a policy of any size has those that it warms up with", "[policy]") {
  using Sizes = std::vector<std::size_t>;
  const PolicyInfo any;
  const PolicyInfo fixed{.batch_sizes = {2}};
  CHECK(detail::served_sizes(any, {.cuda_graphs = true, .warm_up = {16, 1, 16}}) == Sizes{1, 16});
  CHECK(detail::served_sizes(any, {.warm_up = {16, 1}}).empty());
  CHECK(detail::served_sizes(fixed, {.cuda_graphs = true, .warm_up = {16, 1}}) == Sizes{2});
}

TEST_CASE("a policy of fixed sizes cuts and pads, and nobody sees it", "[policy]") {
  FixedSizes fixed({1, 4, 16});
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 16, 40}) {
    const at::Tensor observations = at::randn({rows, 4});
    const PolicyOutput output = fixed.policy->forward(observations);
    CHECK(identical(output.tensors[0], observations * 2));
    CHECK(identical(output.tensors[1], observations.sum(1)));
  }
  CHECK(*fixed.batches == std::vector<std::int64_t>{1, 4, 4, 4, 4, 1, 16, 16, 16, 4, 4});
}

TEST_CASE("a policy's batcher prefers the sizes that it is compiled for", "[policy]") {
  const FixedSizes fixed({1, 4, 16});
  CHECK(make_policy_batcher(fixed.policy, {.max_size = 16}).options().preferred_sizes ==
        std::vector<std::size_t>{1, 4, 16});
  CHECK(make_policy_batcher(fixed.policy, {.max_size = 8}).options().preferred_sizes ==
        std::vector<std::size_t>{1, 4});
  CHECK(make_policy_batcher(fixed.policy, {.preferred_sizes = {4}}).options().preferred_sizes ==
        std::vector<std::size_t>{4});
}

TEST_CASE("a policy's batcher runs as many batches at once as there are replicas", "[policy]") {
  const auto policy =
      make_eager_policy(std::make_shared<Mlp>(), {.replicas = 3, .observation = kFourFloats});
  CHECK(make_policy_batcher(policy).options().parallelism == 3);
}

TEST_CASE("each caller gets the outputs of its row, and the version that made them", "[policy]") {
  const test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Node actor = world.join("actor");
  const auto policy =
      make_eager_policy(std::make_shared<Mlp>(), {.updatable = true, .observation = kFourFloats});
  const auto act = make_policy_batcher(policy, {.max_size = 4});
  agent.expose("act", act);
  agent.expose("update", [policy](const ModuleState& weights, std::uint64_t version) {
    policy->update(weights, version);
  });
  const at::Tensor states = at::randn({3, 4});
  const auto ask_all = [&] {
    std::vector<Future<PolicyReply>> replies;
    for (std::int64_t i = 0; i < 3; ++i)
      replies.push_back(actor.call<PolicyReply(at::Tensor)>("agent", "act", states[i]));
    return when_all(std::move(replies)).get();
  };
  const PolicyOutput expected = policy->forward(states);
  const std::vector<PolicyReply> first = ask_all();
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(first[i].outputs.size() == 2);
    const auto row = static_cast<std::int64_t>(i);
    CHECK(at::allclose(first[i].outputs[0], expected.tensors[0][row], 0, 1e-6));
    CHECK(at::allclose(first[i].outputs[1], expected.tensors[1][row], 0, 1e-6));
    CHECK(first[i].version == 0);
  }
  actor
      .call<void(ModuleState, std::uint64_t)>(
          "agent", "update", torch_test::weights_of_version(state_of(Mlp()), 9), 9U)
      .get();
  for (const PolicyReply& reply : ask_all()) {
    CHECK(reply.version == 9);
    CHECK(identical(reply.outputs[0], at::full({2}, 9.F)));
    CHECK(identical(reply.outputs[1], at::full({}, 9.F)));
  }
}

TEST_CASE("a row of another shape fails alone", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), {.observation = kFourFloats});
  const auto act = make_policy_batcher(policy, {.max_size = 4, .min_size = 2});
  auto good = act(at::zeros({4}));
  CHECK(message_of<InvalidArgument>([&] { (void)act(at::zeros({5})).get(); }) ==
        "a row is float32 [5], but must be float32 [4]");
  auto other = act(at::zeros({4}));
  CHECK(std::move(good).get().outputs.size() == 2);
  CHECK(std::move(other).get().outputs.size() == 2);
}

TEST_CASE("a refused update reaches the learner as what it is", "[policy]") {
  const test::VirtualWorld world;
  const Node agent = world.root("agent");
  const Node learner = world.join("learner");
  const auto policy =
      make_eager_policy(std::make_shared<Mlp>(), {.updatable = true, .observation = kFourFloats});
  agent.expose("update", [policy](const ModuleState& weights, std::uint64_t version) {
    policy->update(weights, version);
  });
  auto refused =
      learner.call<void(ModuleState, std::uint64_t)>("agent", "update", ModuleState{}, 1U);
  CHECK_THAT(message_of<InvalidArgument>([&] { std::move(refused).get(); }),
             Contains("'hidden1.bias' is missing"));
}

}  // namespace policy_serving_test
}  // namespace batchrpc
