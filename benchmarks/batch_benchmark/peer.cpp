#include <torch/version.h>

#include <batchrpc/base/version.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "batch_benchmark/observers.hpp"
#include "batch_benchmark/sections.hpp"
#include "batch_benchmark/variant.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

namespace {

double rounded(double value, int decimals) {
  const double scale = std::pow(10, decimals);
  return std::round(value * scale) / scale;
}

}  // namespace

nlohmann::json measure_peer(const Run& run) {
  const Options& options = run.options;
  Observers observers(options.callers, run);
  const Variant variant = batcher_variant(options.batchers.front());
  Served served(observers.node(), variant, observers.names(options.callers), options.grad,
                [&](batchrpc::BatchOptions& batch) {
                  batch.max_size = static_cast<std::size_t>(options.batch);
                  batch.min_size = std::min(batch.min_size, batch.max_size);
                });
  const Sample sample =
      observers.measure(options.callers, Served::function(), [&] { served.release(); });
  const auto us = batchrpc_examples::percentiles(sample.us, {50, 90, 99});
  run.out << text_of("%d callers, %s: %.0f rows/s, p50 %.1f us, p99 %.1f us, %.2f rows a batch\n",
                     options.callers, variant.name.c_str(), sample.rows_per_s, us[0], us[2],
                     served.mean_batch());
  return {{"system", "batchrpc"},
          {"version", batchrpc::version()},
          {"torch", TORCH_VERSION},
          {"callers", options.callers},
          {"rows_per_s", rounded(sample.rows_per_s, 1)},
          {"p50_us", rounded(us[0], 1)},
          {"p90_us", rounded(us[1], 1)},
          {"p99_us", rounded(us[2], 1)},
          {"mean_batch", rounded(served.mean_batch(), 2)},
          {"seconds", options.seconds},
          {"grad", options.grad},
          {"notes", variant.name + ", at most " + std::to_string(options.batch) + " rows"}};
}

}  // namespace batch_benchmark
