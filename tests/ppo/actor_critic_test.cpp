#include <torch/torch.h>
#include <torch/version.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "actor_critic/network.hpp"

namespace actor_critic {
namespace actor_critic_test {

namespace fs = std::filesystem;
namespace rpc = batchrpc;

at::Tensor some_observations(const Network& network, std::int64_t rows) {
  std::vector<std::int64_t> shape{rows};
  const rpc::RowForm form = network.observation();
  shape.insert(shape.end(), form.sizes.begin(), form.sizes.end());
  if (form.type == at::kByte) return at::randint(0, 256, shape, at::kByte);
  return form.type == at::kBool ? at::rand(shape) < .5 : at::randn(shape);
}

void check_equal(Network& network, rpc::Policy& policy) {
  for (const std::int64_t rows : {1, 3}) {
    const at::Tensor observations = some_observations(network, rows);
    const auto [logits, value] = network.forward(observations);
    const rpc::PolicyOutput output = policy.forward(observations);
    REQUIRE(output.tensors.size() == 2);
    CHECK(at::allclose(output.tensors[0], logits, 0, 1e-5));
    CHECK(at::allclose(output.tensors[1], value, 0, 1e-5));
  }
}

TEST_CASE("networks have a logit for each action, and a value", "[actor_critic]") {
  const auto atari = make_atari(5);
  const auto [logits, value] = atari->forward(some_observations(*atari, 2));
  CHECK(logits.sizes() == at::IntArrayRef{2, 5});
  CHECK(value.sizes() == at::IntArrayRef{2});
  const auto mlp = make_mlp(10, 3, 32);
  CHECK(std::get<0>(mlp->forward(at::zeros({4, 10}))).sizes() == at::IntArrayRef{4, 3});
}

TEST_CASE("a network's TorchScript, made in C++, says the same", "[actor_critic]") {
  const std::string path =
      (fs::temp_directory_path() / ("actor_critic_test." + std::to_string(::getpid()) + ".pt"))
          .string();
  for (const auto& network :
       {make_atari(), make_mlp(), make_two_mlps(4, 2), make_minatar({at::kBool, {4, 10, 10}}, 3)}) {
    save_script(*network, path);
    check_equal(*network, *rpc::load_policy(path));
    check_equal(*network, *rpc::load_policy(path, {.updatable = true}));
  }
  fs::remove(path);
}

TEST_CASE("Python's networks have the same weights by name, and say the same", "[actor_critic]") {
  const std::string folder = BATCHRPC_POLICIES;
  if (folder.empty()) {
    WARN("left out: a Python with PyTorch " TORCH_VERSION ", which exports policies");
    return;
  }
  const auto check = [&](const std::shared_ptr<Network>& network, const std::string& path) {
    load_weights(*network, path);  // throws where names or shapes differ
    check_equal(*network, *rpc::load_policy(path));
  };
  check(make_atari(), folder + "/atari/script.pt");
  check(make_mlp(), folder + "/mlp/script.pt");
  check(make_two_mlps(4, 2), folder + "/two-mlps/script.pt");
  check(make_minatar({at::kBool, {4, 10, 10}}, 3), folder + "/minatar/script.pt");
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
TEST_CASE("compiled packages of a network say what it says", "[actor_critic]") {
  const fs::path folder = BATCHRPC_POLICIES;
  if (folder.empty()) {
    WARN("left out: a Python with PyTorch " TORCH_VERSION ", which exports policies");
    return;
  }
  const auto check = [&](const std::shared_ptr<Network>& network, const std::string& name,
                         const std::string& form) {
    CAPTURE(name, form);
    load_weights(*network, (folder / name / "script.pt").string());
    check_equal(*network, *rpc::load_policy((folder / name / form).string()));
  };
  const rpc::RowForm planes{at::kBool, {4, 10, 10}};
  check(make_two_mlps(4, 2), "two-mlps", "updatable");
  check(make_mlp(), "mlp", "dynamic");
  check(make_minatar(planes, 3), "minatar", "updatable");
  check(make_atari(), "atari", "frozen");
}

TEST_CASE("all packages of a network have the weights of an update", "[actor_critic]") {
  const fs::path folder = BATCHRPC_POLICIES;
  if (folder.empty()) {
    WARN("left out: a Python with PyTorch " TORCH_VERSION ", which exports policies");
    return;
  }
  const auto check = [&](const std::string& name, const std::vector<std::size_t>& sizes,
                         const auto& make) {
    CAPTURE(name);
    const auto policy =
        rpc::load_policy((folder / name / "updatable").string(), {.updatable = true});
    CHECK(policy->info().batch_sizes == sizes);
    for (std::uint64_t version = 1; version <= 2; ++version) {
      const std::shared_ptr<Network> trained = make();
      policy->update(rpc::state_of(*trained), version);
      check_equal(*trained, *policy);  // batches of 1 and of 3
    }
  };
  check("minatar", {1, 3}, [] { return make_minatar({at::kBool, {4, 10, 10}}, 3); });
  check("atari", {3}, [] { return make_atari(); });
}
#endif

TEST_CASE("weights are orthogonal where they are asked to be", "[actor_critic]") {
  const auto mlp = make_mlp();
  initialize_orthogonally(*mlp);
  const rpc::ModuleState state = rpc::state_of(*mlp);
  const at::Tensor hidden = state.parameters.at("hidden2.weight");
  CHECK(at::allclose(hidden.mm(hidden.t()), 2 * at::eye(64), 0, 1e-4));
  const at::Tensor policy = state.parameters.at("policy.weight");
  CHECK(at::allclose(policy.mm(policy.t()), 1e-4 * at::eye(2), 0, 1e-6));
  CHECK(state.parameters.at("value.weight").norm().item<double>() == Approx(1));
  CHECK(state.parameters.at("hidden1.bias").abs().max().item<double>() == 0);
}

}  // namespace actor_critic_test
}  // namespace actor_critic
