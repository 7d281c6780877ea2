#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ppo/sample.hpp"

namespace batchrpc_examples::ppo {

/// Returns and lengths of the episodes that samples hold, put together over their borders. A row
/// that is not valid drops the episode that it would have gone on, and a sample that begins anew
/// those that there were.
class EpisodeStatistics {
 public:
  static constexpr std::size_t kWindow = 100;

  /// Samples of all groups, in the same order each time.
  void add(const std::vector<Sample>& samples);

  /// Episodes that have ended.
  [[nodiscard]] std::int64_t episodes() const { return episodes_; }
  /// Means of the last `kWindow` episodes, or of all when there are fewer; 0 at first.
  /// @{
  [[nodiscard]] double mean_return() const;
  [[nodiscard]] double mean_length() const;
  /// @}
  /// Whether there are `kWindow` episodes, and their mean return is that at least.
  [[nodiscard]] bool reached(double mean_return_) const {
    return window_.size() == kWindow && mean_return() >= mean_return_;
  }

  [[nodiscard]] nlohmann::json state() const;
  /// Throws nlohmann::json::exception for anything but a state.
  void restore(const nlohmann::json& state);

 private:
  struct Episode {
    double reward_sum = 0;
    std::int64_t length = 0;
  };

  void add_row(Episode& running, double reward, bool ended);

  std::vector<std::vector<Episode>> running_;  // of each group's environments
  std::deque<Episode> window_;
  std::int64_t episodes_ = 0;
};

}  // namespace batchrpc_examples::ppo
