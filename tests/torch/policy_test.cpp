#include "batchrpc/torch/policy.hpp"

#include <limits>

#include "torch/policy_networks.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace policy_test {

using Catch::Matchers::Contains;
using torch_test::identical;
using torch_test::kFourFloats;
using torch_test::message_of;
using torch_test::Mlp;
using torch_test::TwoWeights;

PolicyOptions four_floats(bool updatable = false) {
  return {.updatable = updatable, .observation = kFourFloats};
}

TEST_CASE("an eager policy says what its module says", "[policy]") {
  const auto module = std::make_shared<Mlp>();
  const auto policy = make_eager_policy(module, four_floats());
  const at::Tensor states = at::randn({5, 4});
  const PolicyOutput output = policy->forward(states);
  const auto [logits, value] = module->forward(states);
  REQUIRE(output.tensors.size() == 2);
  CHECK(identical(output.tensors[0], logits));
  CHECK(identical(output.tensors[1], value));
  CHECK_FALSE(output.tensors[0].requires_grad());
  CHECK(output.version == 0);
}

TEST_CASE("a policy says what it takes and gives", "[policy]") {
  PolicyOptions options = four_floats(true);
  options.replicas = 3;
  options.version = 7;
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), options);
  const PolicyInfo& info = policy->info();
  CHECK(info.kind == PolicyKind::eager);
  CHECK(info.updatable);
  CHECK(info.batch_sizes.empty());
  CHECK(info.observation == kFourFloats);
  const std::vector<RowForm> outputs{{at::kFloat, {2}}, {at::kFloat, {}}};
  CHECK((info.outputs == outputs));
  CHECK(info.device == "cpu");
  CHECK(info.replicas == 3);
  CHECK(policy->version() == 7);
  CHECK(policy->forward(at::zeros({1, 4})).version == 7);
}

TEST_CASE("observations of another type or shape are refused with both", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), four_floats());
  const auto refused = [&](const at::Tensor& observations) {
    return message_of<InvalidArgument>([&] { (void)policy->forward(observations); });
  };
  const std::string takes =
      ", but the policy of a module takes a batch of at least one float32 [4]";
  CHECK(refused(at::zeros({2, 5})) == "observations are float32 [2, 5]" + takes);
  CHECK(refused(at::zeros({4})) == "observations are float32 [4]" + takes);
  CHECK(refused(at::zeros({2, 4}, at::kDouble)) == "observations are float64 [2, 4]" + takes);
  CHECK(refused(at::zeros({0, 4})) == "observations are float32 [0, 4]" + takes);
  CHECK(refused(at::Tensor()) == "observations are an undefined tensor" + takes);
  CHECK_THAT(refused(at::zeros({2, 4}).to_sparse()), Contains("float32 [2, 4]"));
}

TEST_CASE("observations may be views of any strides", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), four_floats());
  const at::Tensor states = at::randn({4, 6});
  const at::Tensor view = states.t().narrow(0, 1, 3);
  CHECK(at::allclose(policy->forward(view).tensors[0],
                     policy->forward(view.contiguous()).tensors[0], 0, 1e-6));
}

TEST_CASE("an update changes what a policy says, and its version", "[policy]") {
  const auto module = std::make_shared<Mlp>();
  const auto policy = make_eager_policy(module, four_floats(true));
  Mlp trained;
  policy->update(state_of(trained), 3);
  const at::Tensor states = at::randn({2, 4});
  const PolicyOutput output = policy->forward(states);
  CHECK(output.version == 3);
  CHECK(policy->version() == 3);
  CHECK(identical(output.tensors[0], std::get<0>(trained.forward(states))));
  const torch::NoGradGuard no_grad;
  trained.policy->bias.fill_(100);  // copied: the policy is not touched
  CHECK(identical(policy->forward(states).tensors[0], output.tensors[0]));
}

TEST_CASE("versions of weights rise", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), four_floats(true));
  const ModuleState weights = state_of(Mlp());
  policy->update(weights, 5);
  for (const std::uint64_t version : {0U, 4U, 5U}) {
    CHECK(message_of<InvalidArgument>([&] { policy->update(weights, version); }) ==
          "weights of version " + std::to_string(version) +
              " were given to a policy that has version 5: each update needs a higher version");
  }
  CHECK(policy->version() == 5);
}

TEST_CASE("weights that do not fit are refused whole, and every difference is named", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), four_floats(true));
  const at::Tensor states = at::randn({2, 4});
  const at::Tensor before = policy->forward(states).tensors[0];
  ModuleState weights = state_of(Mlp()).clone();
  weights.parameters.erase("hidden1.bias");
  weights.parameters["hidden1.weight"] = at::zeros({64, 5});
  weights.parameters["hidden2.weight"] = at::zeros({64, 64}, at::kDouble);
  weights.parameters["hidden2.bias"][3] = std::numeric_limits<float>::quiet_NaN();
  weights.parameters["policy.bias"][1] = std::numeric_limits<float>::infinity();
  weights.parameters["value.bias"] = at::Tensor();
  weights.parameters["extra"] = at::zeros({1});
  weights.buffers["policy.weight"] = at::zeros({1});
  const std::string said = message_of<InvalidArgument>([&] { policy->update(weights, 1); });
  CHECK_THAT(
      said, Contains("the weights do not fit the policy, which keeps its present weights:") &&
                Contains("'hidden1.bias' is missing") &&
                Contains("'hidden1.weight' is float32 [64, 4] in the policy, but float32 [64, 5] "
                         "in the update") &&
                Contains("'hidden2.weight' is float32 [64, 64] in the policy, but float64 [64, 64] "
                         "in the update") &&
                Contains("'hidden2.bias' has values that are not finite (NaN or infinite)") &&
                Contains("'policy.bias' has values that are not finite") &&
                Contains("'value.bias' is float32 [1] in the policy, but an undefined tensor") &&
                Contains("the policy has no 'extra'") &&
                Contains("'policy.weight' is both a parameter and a buffer"));
  CHECK(policy->version() == 0);
  CHECK(identical(policy->forward(states).tensors[0], before));
}

TEST_CASE("a frozen policy refuses updates", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), four_floats());
  CHECK(message_of<InvalidArgument>([&] { policy->update(state_of(Mlp()), 1); }) ==
        "the policy of a module is frozen, so its weights cannot change: load it with "
        "PolicyOptions::updatable");
}

TEST_CASE("options of a policy that are out of range are named", "[policy]") {
  const auto refused = [](const PolicyOptions& options) {
    return message_of<InvalidArgument>(
        [&] { (void)make_eager_policy(std::make_shared<Mlp>(), options); });
  };
  PolicyOptions options = four_floats();
  options.replicas = 0;
  CHECK(refused(options) == "PolicyOptions::replicas is 0, but must be from 1 to 256");
  options = four_floats();
  options.warm_up = {};
  CHECK_THAT(refused(options), Contains("PolicyOptions::warm_up is empty"));
  options.warm_up = {0};
  CHECK_THAT(refused(options), Contains("PolicyOptions::warm_up has 0"));
  options = four_floats();
  options.device = "abacus";
  CHECK_THAT(refused(options), Contains("PolicyOptions::device 'abacus'"));
  const std::string count = std::to_string(torch::cuda::device_count());
  for (const std::string& beyond : {count, std::string("200"), std::string("256")}) {
    options.device = "cuda:" + beyond;
    CHECK(refused(options) == "PolicyOptions::device '" + options.device +
                                  "': LibTorch has no such device here; CUDA devices: " + count);
  }
  options = four_floats();
  options.kind = PolicyKind::compiled;
  CHECK_THAT(refused(options), Contains("PolicyOptions::kind is compiled"));
  CHECK_THAT(refused({}), Contains("set PolicyOptions::observation"));
  options = four_floats();
  options.cuda_graphs = true;
  CHECK_THAT(refused(options), Contains("PolicyOptions::cuda_graphs"));
}

TEST_CASE("a module that does not run with its observations is refused", "[policy]") {
  PolicyOptions options = four_floats();
  options.observation->sizes = {5};
  CHECK_THAT(message_of<InvalidArgument>(
                 [&] { (void)make_eager_policy(std::make_shared<Mlp>(), options); }),
             Contains("a module failed to run with 1 rows of float32 [5]: "));
}

struct Squeezing : torch::nn::Module {
  at::Tensor forward(const at::Tensor& states) { return states.sum(1).squeeze(); }
};

TEST_CASE("a module must have a row of output for each observation", "[policy]") {
  CHECK(message_of<InvalidArgument>(
            [] { (void)make_eager_policy(std::make_shared<Squeezing>(), four_floats()); }) ==
        "output 0 of the policy of a module is float32 [] for 1 observations: it must have one row "
        "for each");
}

struct Constant : torch::nn::Module {
  at::Tensor scale = register_parameter("scale", at::zeros({2}));
  std::vector<at::Tensor> forward(const at::Tensor& states) {
    return {scale.unsqueeze(0).expand({states.size(0), 2})};
  }
};

TEST_CASE("what a policy has said does not change with its weights", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Constant>(), four_floats(true));
  const PolicyOutput before = policy->forward(at::zeros({1, 4}));
  policy->update({{{"scale", at::ones({2})}}, {}}, 1);
  CHECK(identical(before.tensors[0], at::zeros({1, 2})));
  CHECK(identical(policy->forward(at::zeros({1, 4})).tensors[0], at::ones({1, 2})));
}

/// Says its observations, and its weights, themselves.
struct Echo : torch::nn::Module {
  at::Tensor scale = register_parameter("scale", at::zeros({1, 4}));
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& states) { return {states, scale}; }
};

TEST_CASE("what a policy has said is its own, not the caller's or the module's", "[policy]") {
  const auto policy = make_eager_policy(std::make_shared<Echo>(), four_floats(true));
  at::Tensor states = at::zeros({1, 4});
  const PolicyOutput before = policy->forward(states);
  CHECK_FALSE(before.tensors[1].requires_grad());
  states.fill_(5);
  policy->update({{{"scale", at::ones({1, 4})}}, {}}, 1);
  CHECK(identical(before.tensors[0], at::zeros({1, 4})));
  CHECK(identical(before.tensors[1], at::zeros({1, 4})));
}

TEST_CASE("an eager policy never mixes weights of two versions", "[policy]") {
  const auto module = std::make_shared<TwoWeights>();
  const ModuleState like = state_of(*module).clone();
  const auto policy = make_eager_policy(module, four_floats(true));
  CHECK(torch_test::is_never_torn(*policy, like, 500));
}

TEST_CASE("outputs that are views of weights are of one version, too", "[policy]") {
  const auto module = std::make_shared<torch_test::TwoViews>();
  const ModuleState like = state_of(*module).clone();
  const auto policy = make_eager_policy(module, four_floats(true));
  CHECK(torch_test::is_never_torn(*policy, like, 500));
}

TEST_CASE("a policy names the weights that it takes, a frozen one none", "[policy]") {
  const std::map<std::string, RowForm> weights{{"first", {at::kFloat, {1}}},
                                               {"second", {at::kFloat, {1}}}};
  const auto make = [](bool updatable) {
    return make_eager_policy(std::make_shared<torch_test::TwoViews>(), four_floats(updatable));
  };
  CHECK((make(true)->info().weights == weights));
  CHECK(make(false)->info().weights.empty());
}

}  // namespace policy_test
}  // namespace batchrpc
