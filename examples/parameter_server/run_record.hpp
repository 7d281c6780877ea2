#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "parameter_server/parameter_server.hpp"

namespace batchrpc_examples {

/// One iteration of all trainers. Trainers' times are means, except `seconds`, which is the
/// longest.
struct IterationRecord {
  std::int64_t iteration = 0;
  int trainers = 0;
  double loss = 0;
  double seconds = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double sum_seconds = 0;  ///< summed over all servers
  double step_seconds = 0;
  double checkpoint_seconds = 0;
  double bytes = 0;           ///< sent and received
  double mean_staleness = 0;  ///< mean over the updates
};

/// A text such as "Iteration 3 | loss 0.0333 | 5 trainers | 0.53 s | 1775 MB/s | …".
std::string progress_line(const IterationRecord& record, bool with_staleness);

/// Collects the reports of servers and trainers. Thread-safe.
class RunRecord {
 public:
  /// `bytes` is each trainer's total of sent and received bytes. `lines` takes each complete
  /// record: its iteration is finished, and every trainer that sent a gradient has reported.
  RunRecord(double bytes, std::function<void(const IterationRecord&)> lines);

  void updated(const UpdateReport& update);
  void reported(const IterationReport& report);

  /// Returns all records, and reports the incomplete ones too.
  std::vector<IterationRecord> finish();

 private:
  struct Gathered {
    std::vector<IterationReport> reports;
    std::vector<UpdateReport> updates;
  };
  void report_until(std::int64_t last);
  [[nodiscard]] IterationRecord record_of(std::int64_t iteration, const Gathered& gathered) const;

  const double bytes_;
  const std::function<void(const IterationRecord&)> lines_;
  std::mutex mutex_;
  std::int64_t finished_ = 0;
  std::int64_t untold_ = 0;  // the first iteration that was not reported
  std::map<std::int64_t, Gathered> gathered_;
};

}  // namespace batchrpc_examples
