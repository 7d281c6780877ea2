#include "batchrpc/batch/batch_statistics.hpp"

#include <array>
#include <cstdio>

namespace batchrpc {
namespace {

template <class... Values>
void add_line(std::string& table, const char* format, Values... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), format, values...);  // NOLINT: the formats are ours
  table += line.data();
  table += '\n';
}

double microseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

void add_times(std::string& table, const char* name, const Histogram& times) {
  add_line(table, "%-14s%12.1f%12.1f%12.1f%12.1f%12.1f", name, times.mean() / 1e3,
           microseconds(times.quantile(.5)), microseconds(times.quantile(.9)),
           microseconds(times.quantile(.99)), microseconds(times.max()));
}

}  // namespace

BatcherMetrics metrics_of(const BatchStatistics& statistics) {
  BatcherMetrics metrics;
  metrics.rows = statistics.rows;
  metrics.rejected = statistics.rejected;
  metrics.invalid = statistics.invalid;
  metrics.expired = statistics.expired;
  metrics.cancelled = statistics.cancelled;
  metrics.left = statistics.left;
  metrics.dropped = statistics.dropped;
  metrics.answered = statistics.answered;
  metrics.failed = statistics.failed;
  metrics.batches = statistics.batches;
  metrics.handler_runs = statistics.handler_runs;
  metrics.padding = statistics.padding;
  for (std::size_t i = 0; i < kBatchReasons; ++i) {
    metrics.reasons.push_back({.reason = std::string(to_string(static_cast<BatchReason>(i))),
                               .batches = statistics.reasons.at(i)});
  }
  metrics.sizes = statistics.sizes;
  metrics.queue_wait = statistics.queue_wait;
  metrics.handler_time = statistics.handler_time;
  metrics.latency = statistics.latency;
  metrics.rows_per_second = statistics.rows_per_second;
  metrics.queued = statistics.queued;
  metrics.queued_bytes = statistics.queued_bytes;
  metrics.held = statistics.held;
  metrics.running = statistics.running;
  return metrics;
}

std::string to_string(const BatchStatistics& statistics) {
  const BatchStatistics& s = statistics;
  std::string table;
  const auto rows = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
  add_line(table,
           "rows          %llu arrived: %llu answered, %llu failed, %llu rejected, %llu invalid, "
           "%llu expired, %llu cancelled, %llu left, %llu dropped",
           rows(s.rows), rows(s.answered), rows(s.failed), rows(s.rejected), rows(s.invalid),
           rows(s.expired), rows(s.cancelled), rows(s.left), rows(s.dropped));
  add_line(table,
           "now           %zu queued (%zu bytes), %zu held, %zu batches running; %.0f rows/s",
           s.queued, s.queued_bytes, s.held, s.running, s.rows_per_second);
  add_line(table, "batches       %llu, %llu handler runs, %llu rows of padding; mean %.1f rows",
           rows(s.batches), rows(s.handler_runs), rows(s.padding), s.sizes.mean());
  table += "started by   ";
  for (std::size_t i = 0; i < kBatchReasons; ++i) {
    if (s.reasons.at(i) == 0) continue;
    table += " " + std::string(to_string(static_cast<BatchReason>(i))) + " " +
             std::to_string(s.reasons.at(i));
  }
  table += '\n';
  add_line(table, "in force      at most %zu rows, a wait of %.1f us", s.size,
           static_cast<double>(s.wait.count()) / 1e3);
  if (s.rows_copied + s.rows_in_place > 0) {
    add_line(table, "tensor rows   %llu copied (%llu bytes), %llu received in place",
             rows(s.rows_copied), rows(s.bytes_copied), rows(s.rows_in_place));
  }
  add_line(table, "%-14s%12s%12s%12s%12s%12s", "us", "mean", "p50", "p90", "p99", "max");
  add_times(table, "queue wait", s.queue_wait);
  add_times(table, "handler", s.handler_time);
  add_times(table, "latency", s.latency);
  add_line(table, "%-14s%12s", "rows a batch", "batches");
  for (const Histogram::Bucket& bucket : s.sizes.buckets()) {
    const std::string range =
        std::to_string(bucket.lowest) +
        (bucket.highest > bucket.lowest ? "-" + std::to_string(bucket.highest) : "");
    add_line(table, "%-14s%12llu", range.c_str(), rows(bucket.count));
  }
  return table;
}

}  // namespace batchrpc
