#include "ppo/policies.hpp"

#include <torch/version.h>

#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "actor_critic/network.hpp"
#include "common/passing_folder.hpp"
#include "games/games.hpp"

namespace batchrpc_examples::ppo {
namespace policies_test {

namespace rpc = batchrpc;

#if !(TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10))
TEST_CASE("A training by a compiled policy is refused where LibTorch runs none") {
  const PassingFolder folder("ppo_test");
  PpoOptions options;
  options.policy = PolicyKind::compiled;
  options.policy_path = folder.path() / "any.pt2";
  std::ofstream(options.policy_path) << "a package";
  CHECK_THROWS_WITH(make_policy(options, make_env("cartpole")->spec(), 2),
                    Catch::Contains("which LibTorch " TORCH_VERSION " does not run"));
}
#endif

TEST_CASE("A policy of another network is refused when it is loaded") {
  const PassingFolder folder("ppo_test");
  PpoOptions options;
  options.policy = PolicyKind::script;
  options.policy_path = folder.path() / "mlp.pt";
  actor_critic::save_script(*actor_critic::make_mlp(), options.policy_path);
  CHECK_THROWS_WITH(make_policy(options, make_env("cartpole")->spec(), 2),
                    Catch::Contains("other weights than the environment's network"));
  CHECK_THROWS_WITH(make_policy(options, make_env("minatar-breakout")->spec(), 2),
                    Catch::Contains("takes observations of float32 [4]"));
  actor_critic::save_script(*actor_critic::make_two_mlps(4, 3), options.policy_path);
  CHECK_THROWS_WITH(make_policy(options, make_env("cartpole")->spec(), 2),
                    Catch::Contains("does not return logits (float32 [2])"));
}

TEST_CASE("A worker's policy refuses weights of another network") {
  PpoOptions options{.envs_per_worker = 2};
  options.inference = InferencePlace::worker;
  const auto policy = make_network_policy(options, make_env("cartpole")->spec(), 1);
  CHECK_THROWS_WITH(policy->update(rpc::Bytes::allocate(12), 1),
                    Catch::Contains("12 bytes") && Catch::Contains("--env"));
  CHECK_THROWS_AS(make_policy(
                      [] {
                        PpoOptions compiled;
                        compiled.policy = PolicyKind::compiled;
                        compiled.policy_path = "/nowhere";
                        return compiled;
                      }(),
                      make_env("cartpole")->spec(), 2),
                  rpc::Error);
}

TEST_CASE(
    "A worker's policy acts for any buffer that the agent asks for, whatever its own options") {
  PpoOptions options{.envs_per_worker = 2};
  options.inference = InferencePlace::worker;
  const auto policy = make_network_policy(options, make_env("cartpole")->spec(), 1);
  const std::vector<float> observations(3 * 4);
  std::vector<std::int64_t> actions(3, -1);
  std::vector<float> extras(3 * policy->extras());
  for (const std::size_t buffer : {std::size_t{0}, std::size_t{15}}) {
    policy->act(buffer, 3, std::as_bytes(std::span(observations)),
                std::as_writable_bytes(std::span(actions)), extras);
    for (const std::int64_t action : actions)
      CHECK((action == 0 || action == 1));
  }
}

}  // namespace policies_test
}  // namespace batchrpc_examples::ppo
