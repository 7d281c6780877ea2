#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace batch_benchmark {

/// The results for one value of the swept setting, one per round.
struct SweepPoint {
  double x = 0;
  std::vector<double> rows_per_s{};
  std::vector<double> p50_us{};
  std::vector<double> p99_us{};
  std::vector<double> mean_batch{};
};

struct SweepSeries {
  std::string name{};
  std::vector<SweepPoint> points{};
};

struct Sweep {
  std::string name{};   ///< the swept setting, such as "max_size"
  std::string title{};  ///< describes the callers
  std::string x_label{};
  bool doubling = false;  ///< each x is twice the one before
  std::vector<SweepSeries> series{};
};

/// Appends one object per point.
void append_rows(const Sweep& sweep, nlohmann::json& rows);

/// Writes batching_<name>_rate and batching_<name>_p99 to a folder, each as .svg and .png. Lines
/// are medians; bands lie between the quartiles of the rounds.
void draw(const Sweep& sweep, const std::string& folder);

}  // namespace batch_benchmark
