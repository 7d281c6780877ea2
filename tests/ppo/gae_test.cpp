#include "ppo/gae.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace batchrpc_examples::ppo {
namespace gae_test {

// A sample of one environment; only what advantages are made of.
Sample sample_of(const std::vector<float>& rewards, const std::vector<float>& values) {
  const auto steps = static_cast<std::int64_t>(rewards.size());
  Sample sample;
  sample.rewards = at::tensor(rewards).view({steps, 1});
  sample.values = at::tensor(values).view({steps, 1});
  sample.terminated = at::zeros({steps, 1}, at::kBool);
  sample.truncated = at::zeros({steps, 1}, at::kBool);
  sample.valid = at::ones({steps, 1}, at::kBool);
  sample.final_rows = at::zeros({0}, at::kLong);
  return sample;
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.flatten().to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

at::Tensor values(std::vector<float> all) { return at::tensor(all); }
const at::Tensor kNoFinals = at::zeros({0});

void check(const at::Tensor& tensor, const std::vector<double>& expected) {
  CHECK_THAT(numbers(tensor), Catch::Approx(expected).epsilon(1e-6).margin(1e-6));
}

// γ = λ = 1/2 throughout: γλ = 1/4.

TEST_CASE("Advantages of an episode that goes on end with the value of what comes next") {
  const Sample sample = sample_of({1, 2, 4}, {8, 16, 32});
  const Advantages result = advantages_of(sample, values({64}), kNoFinals, 0.5, 0.5);
  // δ_2 = 4 + 32 - 32 = 4; δ_1 = 2 + 16 - 16 = 2; δ_0 = 1 + 8 - 8 = 1
  check(result.advantages, {1 + 3.0 / 4, 2 + 4.0 / 4, 4});
  check(result.returns, {8 + 1.75, 16 + 3, 32 + 4});
}

TEST_CASE("After a termination nothing is worth anything") {
  Sample sample = sample_of({1, 2, 4}, {8, 16, 32});
  sample.terminated[1][0] = true;
  const Advantages result = advantages_of(sample, values({64}), kNoFinals, 0.5, 0.5);
  // δ_1 = 2 - 16 = -14, and the third row is of another episode
  check(result.advantages, {1 - 14.0 / 4, -14, 4});
}

TEST_CASE("After a truncation the final observation has its value") {
  Sample sample = sample_of({1, 2, 4}, {8, 16, 32});
  sample.truncated[1][0] = true;
  sample.final_rows = at::tensor(std::vector<std::int64_t>{1});
  const Advantages result = advantages_of(sample, values({64}), values({100}), 0.5, 0.5);
  // δ_1 = 2 + 50 - 16 = 36, not of the 32 of the next episode's first observation
  check(result.advantages, {1 + 36.0 / 4, 36, 4});
}

TEST_CASE("A truncation in the last row takes the final value, not that of the next episode") {
  Sample sample = sample_of({1}, {8});
  sample.truncated[0][0] = true;
  sample.final_rows = at::tensor(std::vector<std::int64_t>{0});
  check(advantages_of(sample, values({64}), values({20}), 0.5, 0.5).advantages, {1 + 10 - 8});
}

TEST_CASE("An episode both terminated and truncated has terminated") {
  Sample sample = sample_of({1}, {8});
  sample.truncated[0][0] = true;
  sample.terminated[0][0] = true;
  check(advantages_of(sample, values({64}), kNoFinals, 0.5, 0.5).advantages, {-7});
}

TEST_CASE("A truncated row without a final observation is refused") {
  Sample sample = sample_of({1}, {8});
  sample.truncated[0][0] = true;
  CHECK_THROWS_AS(advantages_of(sample, values({64}), kNoFinals, 0.5, 0.5), std::invalid_argument);
}

TEST_CASE("A row that is not valid has no advantage, and hands none on") {
  Sample sample = sample_of({1, 1000, 4}, {8, 16, 32});
  sample.valid[1][0] = false;
  const Advantages result = advantages_of(sample, values({64}), kNoFinals, 0.5, 0.5);
  // The first row led to what has the value 16, all the same.
  check(result.advantages, {1, 0, 4});
  check(result.returns, {9, 0, 36});
}

TEST_CASE("Environments do not mix") {
  Sample sample = sample_of({1, 2, 4}, {8, 16, 32});
  const Sample other = sample_of({0, 0, 1}, {0, 0, 0});
  for (auto member :
       {&Sample::rewards, &Sample::values, &Sample::terminated, &Sample::truncated, &Sample::valid})
    sample.*member = at::cat({other.*member, sample.*member}, 1);
  sample.terminated[2][0] = true;
  sample.truncated[1][1] = true;
  sample.final_rows = at::tensor(std::vector<std::int64_t>{1 * 2 + 1});
  const Advantages result = advantages_of(sample, values({7, 64}), values({100}), 0.5, 0.5);
  check(result.advantages.select(1, 0), {1.0 / 16, 1.0 / 4, 1});
  check(result.advantages.select(1, 1), {1 + 36.0 / 4, 36, 4});
}

}  // namespace gae_test
}  // namespace batchrpc_examples::ppo
