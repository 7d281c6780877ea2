#include "parameter_server/run_record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "common/counted.hpp"

namespace batchrpc_examples {

std::string progress_line(const IterationRecord& record, bool with_staleness) {
  std::array<char, 240> text{};
  const double loss =
      std::isnan(record.loss) ? std::abs(record.loss) : record.loss;  // avoids "-nan"
  std::snprintf(text.data(), text.size(),
                "Iteration %lld | loss %.4f | %s | %.2f s | %.0f MB/s | waiting %.2f s, "
                "computing %.2f s",
                static_cast<long long>(record.iteration), loss,
                counted(record.trainers, "trainer").c_str(), record.seconds,
                record.seconds > 0 ? record.bytes / record.seconds / 1e6 : 0.0, record.wait_seconds,
                record.compute_seconds);
  std::string line = text.data();
  if (with_staleness) {
    std::snprintf(text.data(), text.size(), " | staleness %.1f", record.mean_staleness);
    line += text.data();
  }
  return line;
}

RunRecord::RunRecord(double bytes, std::function<void(const IterationRecord&)> lines)
    : bytes_(bytes), lines_(std::move(lines)) {}

void RunRecord::updated(const UpdateReport& update) {
  const std::lock_guard lock(mutex_);
  gathered_[update.iteration].updates.push_back(update);
  finished_ = std::max(finished_, update.finished);
}

void RunRecord::reported(const IterationReport& report) {
  const std::lock_guard lock(mutex_);
  Gathered& gathered = gathered_[report.iteration];
  gathered.reports.push_back(report);
  if (report.iteration >= finished_) return;
  std::int64_t expected = 0;
  for (const UpdateReport& update : gathered.updates)
    expected += update.gradients;
  if (static_cast<std::int64_t>(gathered.reports.size()) >= expected)
    report_until(report.iteration);
}

std::vector<IterationRecord> RunRecord::finish() {
  const std::lock_guard lock(mutex_);
  std::vector<IterationRecord> records;
  for (const auto& [iteration, gathered] : gathered_) {
    if (!gathered.reports.empty()) records.push_back(record_of(iteration, gathered));
  }
  if (!records.empty()) report_until(records.back().iteration);
  return records;
}

// Also reports earlier iterations, because a lost trainer does not report.
void RunRecord::report_until(std::int64_t last) {
  for (auto each = gathered_.lower_bound(untold_); each != gathered_.end(); ++each) {
    if (each->first > last) break;
    if (!each->second.reports.empty()) lines_(record_of(each->first, each->second));
  }
  untold_ = std::max(untold_, last + 1);
}

IterationRecord RunRecord::record_of(std::int64_t iteration, const Gathered& gathered) const {
  IterationRecord record{.iteration = iteration,
                         .trainers = static_cast<int>(gathered.reports.size())};
  const double share = 1.0 / std::max(1, record.trainers);
  for (const IterationReport& report : gathered.reports) {
    record.loss += share * report.loss;
    record.compute_seconds += share * report.compute_seconds;
    record.wait_seconds += share * report.wait_seconds;
    record.seconds = std::max(record.seconds, report.seconds);
    record.bytes += bytes_;
  }
  for (const UpdateReport& update : gathered.updates) {
    record.sum_seconds += update.sum_seconds;
    record.step_seconds += update.step_seconds;
    record.checkpoint_seconds += update.checkpoint_seconds;
    record.mean_staleness +=
        static_cast<double>(update.staleness) / static_cast<double>(gathered.updates.size());
  }
  return record;
}

}  // namespace batchrpc_examples
