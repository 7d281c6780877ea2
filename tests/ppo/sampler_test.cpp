#include <algorithm>
#include <batchrpc/base/error.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "ppo/episodes.hpp"
#include "ppo/local_sampler.hpp"
#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {
namespace sampler_test {

namespace rpc = batchrpc;

// Counts its steps from a number of its seed; ends after three, terminated in even episodes and
// truncated in odd ones. Each action is added to what is seen.
class Counter final : public rpc::Env {
 public:
  [[nodiscard]] const rpc::EnvSpec& spec() const noexcept override { return spec_; }
  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override {
    if (seed) base_ = static_cast<float>(*seed % 1000);
    count_ = 0;
    sum_ = 0;
    ++episode_;
    write(observation);
  }
  rpc::EnvStep step(std::span<const std::byte> action, std::span<std::byte> observation) override {
    sum_ += static_cast<float>(rpc::elements_of<std::int64_t>(action)[0]);
    ++count_;
    write(observation);
    const bool ends = count_ == 3;
    return {.reward = static_cast<float>(count_),
            .terminated = ends && episode_ % 2 == 0,
            .truncated = ends && episode_ % 2 == 1};
  }

 private:
  void write(std::span<std::byte> observation) const {
    auto row = rpc::elements_of<float>(observation);
    row[0] = base_;
    row[1] = static_cast<float>(count_);
    row[2] = sum_;
  }

  rpc::EnvSpec spec_{.observation = {rpc::ElementType::float32, {3}}, .actions = 2};
  float base_ = 0;
  int count_ = 0;
  float sum_ = 0;
  int episode_ = 0;
};

Decisions always_one(const at::Tensor& observations) {
  const std::int64_t rows = observations.size(0);
  return {at::ones({rows}, at::kLong), at::full({rows}, -0.5), observations.select(1, 1).clone(),
          42};
}

std::unique_ptr<rpc::Env> make_counter() { return std::make_unique<Counter>(); }

TEST_CASE(
    "A sample has the next episode's first observation after an end, and the final one beside") {
  LocalSampler sampler(&make_counter, 2, 1, &always_one);
  const Sample sample = sampler.sample(7).at(0);
  CHECK(sample.steps() == 7);
  CHECK(sample.envs() == 2);
  CHECK(sample.observations.sizes() == at::IntArrayRef({7, 2, 3}));
  const auto column = [](const at::Tensor& tensor) {
    const at::Tensor dense = tensor.to(at::kFloat).contiguous();
    return std::vector<float>(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
  };
  using Numbers = std::vector<float>;
  CHECK(column(sample.observations.select(2, 1).select(1, 0)) == Numbers{0, 1, 2, 0, 1, 2, 0});
  CHECK(column(sample.observations.select(2, 2).select(1, 1)) == Numbers{0, 1, 2, 0, 1, 2, 0});
  CHECK(column(sample.values.select(1, 0)) == Numbers{0, 1, 2, 0, 1, 2, 0});
  CHECK(column(sample.rewards.select(1, 0)) == Numbers{1, 2, 3, 1, 2, 3, 1});
  CHECK(column(sample.truncated.select(1, 0)) == Numbers{0, 0, 1, 0, 0, 0, 0});
  CHECK(column(sample.terminated.select(1, 0)) == Numbers{0, 0, 0, 0, 0, 1, 0});
  CHECK(column(sample.actions.select(1, 1)) == Numbers(7, 1));
  CHECK(column(sample.log_probs.select(1, 1)) == Numbers(7, -0.5F));
  CHECK(sample.valid.all().item<bool>());
  CHECK(column(sample.versions.flatten()) == Numbers(14, 42));
  CHECK(column(sample.next_observations.select(1, 1)) == Numbers{1, 1});
  CHECK(column(sample.final_rows) == Numbers{4, 5});  // row 2 of both, and none terminated
  CHECK(column(sample.final_observations.select(1, 1)) == Numbers{3, 3});
  CHECK(column(sample.final_observations.select(1, 2)) == Numbers{3, 3});
  // Each environment and episode has a seed of its own.
  CHECK(sample.observations[0][0][0].item<float>() != sample.observations[0][1][0].item<float>());
  CHECK(sample.observations[0][0][0].item<float>() != sample.observations[3][0][0].item<float>());
  // The next sample goes on.
  CHECK(sample.begun_anew);
  const Sample more = sampler.sample(2).at(0);
  CHECK(column(more.observations.select(2, 1).select(1, 0)) == Numbers{1, 2});
  CHECK_FALSE(more.begun_anew);
}

TEST_CASE("A sampler goes on from another one's state as that one does") {
  LocalSampler first(&make_counter, 3, 9, &always_one);
  (void)first.sample(8);
  LocalSampler second(&make_counter, 3, 9, &always_one);
  second.restore(first.state(), 1);
  const Sample a = first.sample(1).at(0);
  const Sample b = second.sample(1).at(0);
  CHECK_FALSE(b.begun_anew);
  CHECK(at::equal(a.observations, b.observations));
  CHECK(at::equal(a.rewards, b.rewards));
  CHECK_THROWS_AS(second.restore(first.state().substr(0, 20), 1), std::invalid_argument);
  CHECK_THROWS_AS(second.restore(first.state() + "x", 1), std::invalid_argument);
  LocalSampler other(&make_counter, 2, 9, &always_one);
  CHECK_THROWS_WITH(other.restore(first.state(), 1), Catch::Contains("number of environments"));
}

TEST_CASE("A sampler wants an environment") {
  CHECK_THROWS_AS(LocalSampler(&make_counter, 0, 1, &always_one), rpc::InvalidArgument);
}

TEST_CASE("Actions are drawn as often as their probabilities say") {
  constexpr std::int64_t kRows = 20'000;
  const std::vector<double> probabilities{0.2, 0.7, 0.1};
  const rpc::PolicyOutput output{
      {at::tensor(probabilities).log().to(at::kFloat).add(3).expand({kRows, 3}),
       at::zeros({kRows})},
      8};
  const Decisions decisions = draw_actions(output, 5, 0);
  CHECK(decisions.version == 7);  // a policy begins with 0, of weights of nobody
  for (std::int64_t action = 0; action < 3; ++action) {
    const at::Tensor is_it = decisions.actions == action;
    const double share = is_it.to(at::kDouble).mean().item<double>();
    const double expected = probabilities[static_cast<std::size_t>(action)];
    CHECK(share == Approx(expected).margin(0.015));
    const at::Tensor log_probs = decisions.log_probs.masked_select(is_it);
    CHECK(log_probs.min().item<double>() == Approx(std::log(expected)).epsilon(1e-5));
    CHECK(log_probs.max().item<double>() == Approx(std::log(expected)).epsilon(1e-5));
  }
  // Drawn in two halves they are the same ones.
  const rpc::PolicyOutput half{{output.tensors[0].slice(0, 0, kRows / 2), at::zeros({kRows / 2})},
                               8};
  CHECK(at::equal(draw_actions(half, 5, kRows / 2).actions, decisions.actions.slice(0, kRows / 2)));
  CHECK_FALSE(at::equal(draw_actions(output, 6, 0).actions, decisions.actions));
}

TEST_CASE("A shuffled order holds each number once") {
  const std::vector<std::int64_t> order = shuffled(1000, 3);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 1000; ++i)
    CHECK(sorted[static_cast<std::size_t>(i)] == i);
  CHECK(order != sorted);
  CHECK(order == shuffled(1000, 3));
  CHECK(order != shuffled(1000, 4));
  CHECK(shuffled(0, 1).empty());
}

Sample rewards_of(std::vector<float> rewards, std::vector<std::int64_t> ends,
                  std::vector<std::int64_t> invalid) {
  const auto steps = static_cast<std::int64_t>(rewards.size());
  Sample sample;
  sample.rewards = at::tensor(rewards).view({steps, 1});
  sample.terminated = at::zeros({steps, 1}, at::kBool);
  sample.truncated = at::zeros({steps, 1}, at::kBool);
  sample.valid = at::ones({steps, 1}, at::kBool);
  for (const std::int64_t row : ends)
    sample.terminated[row][0] = true;
  for (const std::int64_t row : invalid)
    sample.valid[row][0] = false;
  return sample;
}

TEST_CASE("An episode that environments which begin anew were in does not count") {
  EpisodeStatistics statistics;
  statistics.add({rewards_of({1, 2}, {}, {})});
  Sample anew = rewards_of({4, 8}, {1}, {});
  anew.begun_anew = true;
  statistics.add({anew});
  CHECK(statistics.episodes() == 1);
  CHECK(statistics.mean_return() == 12);
}

TEST_CASE("A sampler in this process goes on after workers with new episodes") {
  LocalSampler sampler(&make_counter, 2, 1, &always_one);
  sampler.restore("", 20);
  CHECK(sampler.sample(1).at(0).begun_anew);
}

TEST_CASE("Returns are of whole episodes, over the borders of samples") {
  EpisodeStatistics statistics;
  CHECK(statistics.mean_return() == 0);
  statistics.add({rewards_of({1, 2, 4}, {1}, {})});
  CHECK(statistics.episodes() == 1);
  CHECK(statistics.mean_return() == 3);
  CHECK(statistics.mean_length() == 2);
  EpisodeStatistics other;
  other.restore(nlohmann::json::parse(statistics.state().dump()));
  for (EpisodeStatistics* each : {&statistics, &other}) {
    each->add({rewards_of({8, 16, 32}, {0, 2}, {})});
    CHECK(each->episodes() == 3);
    CHECK(each->mean_return() == (3 + 12 + 48) / 3.0);
    CHECK(each->mean_length() == 2);
    CHECK_FALSE(each->reached(1));  // of fewer than a hundred episodes
  }
}

TEST_CASE("A row that is not valid drops the episode before it") {
  EpisodeStatistics statistics;
  statistics.add({rewards_of({1, 2, 4, 8}, {3}, {1})});
  CHECK(statistics.episodes() == 1);
  CHECK(statistics.mean_return() == 12);  // of those rows that came after
  CHECK(statistics.mean_length() == 2);
}

}  // namespace sampler_test
}  // namespace batchrpc_examples::ppo
