#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
#include <ATen/DeviceAccelerator.h>
#define BATCHRPC_TEST_HAS_ACCELERATOR
#endif

#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "batchrpc/torch/policy_batcher.hpp"
#include "torch/policy_files.hpp"
#include "torch/policy_networks.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace policy_gpu_test {

using Catch::Matchers::Contains;
using torch_test::Folder;
using torch_test::kFourFloats;
using torch_test::message_of;
using torch_test::Mlp;

constexpr const char* kMlp = R"(
def forward(self, states):
    x = torch.tanh(torch.linear(states, self.hidden1.weight, self.hidden1.bias))
    x = torch.tanh(torch.linear(x, self.hidden2.weight, self.hidden2.bias))
    return (torch.linear(x, self.policy.weight, self.policy.bias),
            torch.linear(x, self.value.weight, self.value.bias).squeeze(1))
)";
constexpr const char* kLooking = R"(
def forward(self, states):
    if bool(states.sum() > 1000):
        return states
    return states * 2
)";

/// Looks at a value, for which the CPU waits.
struct Looking : torch::nn::Module {
  at::Tensor forward(const at::Tensor& states) {
    return states.sum().item<float>() > 1000 ? states : states * 2;
  }
};

bool is_there(const std::string& device) {
  if (device == "cpu" || torch::cuda::is_available()) return true;
  WARN("left out: CUDA");
  return false;
}

PolicyOptions options_of(const std::string& device, bool graphs) {
  return {.updatable = true,
          .replicas = graphs ? 2U : 1U,
          .device = device,
          .cuda_graphs = graphs,
          .observation = kFourFloats,
          .warm_up = {4, 1}};
}

std::shared_ptr<Policy> load_script(const std::string& source, const PolicyOptions& options) {
  const Folder folder;
  torch::jit::Module script("Policy");
  const Mlp mlp;
  for (const auto& layer : mlp.named_children()) {
    torch::jit::Module part("Layer_" + layer.key());
    for (const auto& parameter : layer.value()->named_parameters())
      part.register_parameter(parameter.key(), parameter.value(), false);
    script.register_module(layer.key(), part);
  }
  script.define(source);
  script.save((folder.path / "script.pt").string());
  return load_policy((folder.path / "script.pt").string(), options);
}

/// Gives back what LibTorch keeps of a GPU's memory: what a graph uses must not be among it.
void empty_cache([[maybe_unused]] const std::string& device) {
#ifdef BATCHRPC_TEST_HAS_ACCELERATOR
  if (device != "cpu") at::accelerator::emptyCache();
#endif
}

/// Batches of 1 and 4 by turns, of 3, and of more, with weights that change.
void check_serving(Policy& policy) {
  const ModuleState like = state_of(Mlp()).clone();
  CHECK(torch_test::is_never_torn(policy, like, 50));
  for (std::uint64_t version = 1001; version <= 1003; ++version) {
    Mlp trained;
    policy.update(state_of(trained), version);
    empty_cache(policy.info().device);
    for (const std::int64_t rows : {1, 4, 1, 3, 4, 9}) {
      const at::Tensor states = at::randn({rows, 4});
      const auto [logits, value] = trained.forward(states);
      const PolicyOutput output = policy.forward(states);
      CHECK(output.version == version);
      REQUIRE(output.tensors.size() == 2);
      CHECK(output.tensors[0].is_cpu());
      CHECK(at::allclose(output.tensors[0], logits, 1e-4, 1e-4));
      CHECK(at::allclose(output.tensors[1], value, 1e-4, 1e-4));
      const at::Tensor there = states.to(at::Device(policy.info().device));
      CHECK(at::allclose(policy.forward(there).tensors[0], logits, 1e-4, 1e-4));
    }
  }
}

void check_eager_and_script(const std::string& device, bool graphs) {
  const PolicyOptions options = options_of(device, graphs);
  check_serving(*make_eager_policy(std::make_shared<Mlp>(), options));
  check_serving(*load_script(kMlp, options));
}

std::shared_ptr<Policy> load_compiled(const std::string& folder, const PolicyOptions& options) {
  auto policy = load_policy(folder, options);
  CHECK(policy->info().kind == PolicyKind::compiled);
  return policy;
}

TEST_CASE("policies of any kind run batches by turns, with weights that change", "[policy]") {
  check_eager_and_script("cpu", false);
  if (!torch_test::kCompiled) return;
  const std::string package = torch_test::exported("updatable/any.pt2");
  if (!package.empty()) check_serving(*load_compiled(package, options_of("cpu", false)));
}

TEST_CASE("on a GPU a policy says the same, launched or replayed", "[policy]") {
  if (!is_there("cuda")) return;
  check_eager_and_script("cuda:0", GENERATE(false, true));
}

TEST_CASE("on a GPU a compiled policy says the same, launched or replayed", "[policy]") {
  if (!is_there("cuda") || !torch_test::kCompiled) return;
  const std::string folder = torch_test::exported("updatable", "mlp-cuda");
  if (folder.empty()) return;
  check_serving(*load_compiled(folder, options_of("cuda:0", false)));
  PolicyOptions options = options_of("cuda:0", false);
  options.updatable = false;
  const auto launched = load_compiled(folder, options);
  options.cuda_graphs = true;
  const auto replayed = load_compiled(folder, options);
  for (const std::int64_t rows : {1, 4, 1, 3, 4, 9}) {
    empty_cache("cuda:0");
    const at::Tensor states = at::randn({rows, 4});
    const PolicyOutput expected = launched->forward(states);
    const PolicyOutput output = replayed->forward(states);
    REQUIRE(output.tensors.size() == 2);
    CHECK(at::allclose(output.tensors[0], expected.tensors[0], 1e-4, 1e-4));
    CHECK(at::allclose(output.tensors[1], expected.tensors[1], 1e-4, 1e-4));
  }
}

TEST_CASE("an updatable package is refused with CUDA graphs", "[policy]") {
  if (!torch_test::kCompiled) return;
  const std::string package = torch_test::exported("updatable/any.pt2");
  if (package.empty()) return;
  PolicyOptions options = options_of("cpu", true);
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)load_policy(package, options); }),
             Contains("PolicyOptions::cuda_graphs and PolicyOptions::updatable"));
}

TEST_CASE("on a GPU an update from a stream of its own is whole for those of other streams",
          "[policy]") {
  if (!is_there("cuda")) return;
  const ModuleState like = state_of(Mlp()).clone();
  const auto policy =
      make_eager_policy(std::make_shared<Mlp>(), options_of("cuda:0", GENERATE(false, true)));
  const c10::impl::VirtualGuardImpl streams(at::kCUDA);
  const c10::StreamGuard on(streams.getStreamFromGlobalPool(at::Device(at::kCUDA, 0)));
  CHECK(torch_test::is_never_torn(*policy, like, 200));
}

TEST_CASE("on a GPU policies are recorded while others serve", "[policy]") {
  if (!is_there("cuda")) return;
  Mlp network;
  const auto launched = make_eager_policy(std::make_shared<Mlp>(), options_of("cuda:0", false));
  const auto replayed = make_eager_policy(std::make_shared<Mlp>(), options_of("cuda:0", true));
  for (const auto& policy : {launched, replayed})
    policy->update(state_of(network), 1);
  std::atomic<bool> over{false};
  std::atomic<int> right{0};
  std::atomic<int> wrong{0};
  std::vector<std::future<void>> serving;
  const torch_test::Ending ending(over);
  for (const auto& policy : {launched, replayed}) {
    serving.push_back(std::async(std::launch::async, [&, policy] {
      const at::Tensor states = at::randn({3, 4});
      const at::Tensor logits = std::get<0>(network.forward(states)).detach();
      while (!over)
        ++(at::allclose(policy->forward(states).tensors[0], logits, 1e-4, 1e-4) ? right : wrong);
    }));
  }
  for (int i = 0; i < 5; ++i)
    check_eager_and_script("cuda:0", true);
  ending.now();
  for (std::future<void>& each : serving)
    each.get();
  CHECK(right > 0);
  CHECK(wrong == 0);
}

TEST_CASE("on a GPU a policy has the sizes that are recorded, and its device's index", "[policy]") {
  if (!is_there("cuda")) return;
  const auto policy = make_eager_policy(std::make_shared<Mlp>(), options_of("cuda", true));
  CHECK(policy->info().device == "cuda:0");
  const std::vector<std::size_t> sizes{1, 4};
  CHECK(policy->info().batch_sizes == sizes);
  const BatchOptions batches = make_policy_batcher(policy, {.max_size = 8}).options();
  CHECK(batches.preferred_sizes == sizes);
  CHECK(batches.parallelism == 1);  // graphs run one at a time
}

TEST_CASE("what looks at values is refused with CUDA graphs, on a GPU, and harms nothing",
          "[policy]") {
  const std::string device = torch::cuda::is_available() ? "cuda:0" : "cpu";
  const at::Tensor states = at::randn({3, 4});
  const auto check_without = [&](Policy& policy) {
    CHECK(at::allclose(policy.forward(states).tensors[0], states * 2));
  };
  check_without(*make_eager_policy(std::make_shared<Looking>(), options_of(device, false)));
  check_without(*load_script(kLooking, options_of(device, false)));
  if (!is_there("cuda")) return;
  const auto refused = [](const std::function<void()>& load, const std::string& what) {
    CHECK_THAT(message_of<InvalidArgument>(load),
               Contains(what + " cannot be recorded as a CUDA graph with 1 rows: set "
                               "PolicyOptions::cuda_graphs to false (") &&
                   Contains("captur"));
  };
  for (int again = 0; again < 2; ++again) {
    refused([&] { (void)make_eager_policy(std::make_shared<Looking>(), options_of(device, true)); },
            "a module");
    refused([&] { (void)load_script(kLooking, options_of(device, true)); }, "script.pt");
    CHECK_NOTHROW(at::randn({2}, at::Device(device)));  // the device's generator works
    check_without(*make_eager_policy(std::make_shared<Looking>(), options_of(device, false)));
    check_eager_and_script(device, true);
  }
}

}  // namespace policy_gpu_test
}  // namespace batchrpc
