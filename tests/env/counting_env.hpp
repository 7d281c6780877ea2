#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <batchrpc/base/error.hpp>
#include <batchrpc/env.hpp>

namespace batchrpc::test {

/// How many environments there are, and were at the most at one time.
struct Census {
  int alive = 0;
  int most = 0;
};

/// How CountingEnvs behave.
struct Counting {
  std::int32_t length = 3;           ///< steps of an episode
  bool truncates = false;            ///< an episode is truncated then, not terminated
  std::int64_t throws_at = 1000;     ///< the action that it throws at
  bool throws_not_found = false;     ///< then NotFound, else a std::runtime_error
  std::size_t padding = 0;           ///< numbers behind those that are of interest
  std::shared_ptr<Census> census{};  ///< of all that have it, in one thread
};

/// Observes {its seed, the episode, the step in it, the last action}; its reward is the action.
class CountingEnv final : public Env {
 public:
  explicit CountingEnv(Counting how) : how_(how) {
    spec_.observation = {ElementType::int32, {static_cast<std::int64_t>(4 + how.padding)}};
    spec_.actions = 1001;
    if (how_.census) how_.census->most = std::max(how_.census->most, ++how_.census->alive);
  }
  CountingEnv(const CountingEnv&) = delete;
  CountingEnv& operator=(const CountingEnv&) = delete;
  ~CountingEnv() override {
    if (how_.census) --how_.census->alive;
  }

  [[nodiscard]] const EnvSpec& spec() const noexcept override { return spec_; }

  void reset(std::optional<std::uint64_t> seed, std::span<std::byte> observation) override {
    if (seed) {
      seed_ = static_cast<std::int32_t>(*seed);
      episode_ = 0;
    }
    ++episode_;
    step_ = 0;
    ended_ = false;
    observe(-1, observation);
  }

  [[nodiscard]] EnvStep step(std::span<const std::byte> action,
                             std::span<std::byte> observation) override {
    if (ended_) throw std::logic_error("stepped after its end");
    const std::int64_t chosen = elements_of<std::int64_t>(action)[0];
    if (chosen == how_.throws_at) {
      const char* const what = "this environment does not like that";
      if (how_.throws_not_found) throw NotFound(what);
      throw std::runtime_error(what);
    }
    ++step_;
    observe(static_cast<std::int32_t>(chosen), observation);
    ended_ = step_ == how_.length;
    return {.reward = static_cast<float>(chosen),
            .terminated = ended_ && !how_.truncates,
            .truncated = ended_ && how_.truncates};
  }

 private:
  void observe(std::int32_t action, std::span<std::byte> observation) const {
    const auto numbers = elements_of<std::int32_t>(observation);
    std::ranges::fill(numbers, 7);
    const std::array seen{seed_, episode_, step_, action};
    std::ranges::copy(seen, numbers.begin());
  }

  Counting how_;
  EnvSpec spec_;
  std::int32_t seed_ = -1;
  std::int32_t episode_ = 0;
  std::int32_t step_ = 0;
  bool ended_ = false;
};

inline EnvGroupFactory counting_envs(Counting how = {}) {
  return group_of([how] { return std::make_unique<CountingEnv>(how); });
}

/// The first four numbers of each row of a batch's observations, or of other such bytes.
using Seen = std::array<std::int32_t, 4>;
inline std::vector<Seen> seen(const Bytes& observations, std::size_t padding = 0) {
  const auto numbers = elements_of<std::int32_t>(observations.span());
  std::vector<Seen> rows;
  for (std::size_t at = 0; at < numbers.size(); at += 4 + padding)
    rows.push_back({numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]});
  return rows;
}
inline std::vector<Seen> seen(const EnvBatch& batch, std::size_t padding = 0) {
  return seen(batch.observations, padding);
}

inline std::span<const std::byte> bytes_of(const std::vector<std::int64_t>& actions) {
  return std::as_bytes(std::span(actions));
}

}  // namespace batchrpc::test
