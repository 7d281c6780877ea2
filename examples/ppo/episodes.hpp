#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// Returns and lengths of the episodes in samples, joined across sample borders. An invalid row
/// drops the episode that it belongs to. A sample that begins new episodes drops the unfinished
/// ones.
class EpisodeStatistics {
 public:
  static constexpr std::size_t kWindow = 100;

  /// Adds samples of all groups; the groups must have the same order each time.
  void add(const std::vector<Sample>& samples);

  /// The number of finished episodes.
  [[nodiscard]] std::int64_t episodes() const { return episodes_; }
  /// Means of the last `kWindow` episodes, or of all if there are fewer; 0 at first.
  /// @{
  [[nodiscard]] double mean_return() const;
  [[nodiscard]] double mean_length() const;
  /// @}
  /// Whether there are `kWindow` episodes and their mean return is at least this.
  [[nodiscard]] bool reached(double mean_return_) const {
    return window_.size() == kWindow && mean_return() >= mean_return_;
  }

  [[nodiscard]] nlohmann::json state() const;
  /// Throws nlohmann::json::exception if `state` is not a saved state.
  void restore(const nlohmann::json& state);

 private:
  struct Episode {
    double reward_sum = 0;
    std::int64_t length = 0;
  };

  void add_row(Episode& running, double reward, bool ended);

  std::vector<std::vector<Episode>> running_;  // for each environment of each group
  std::deque<Episode> window_;
  std::int64_t episodes_ = 0;
};

}  // namespace batchrpc_examples::ppo
