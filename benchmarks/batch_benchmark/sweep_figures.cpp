#include "batch_benchmark/sweep_figures.hpp"

#include <nlohmann/json.hpp>

#include "batch_benchmark/report.hpp"
#include "common/figure.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

namespace {

using batchrpc_examples::Figure;

Figure figure_of(const Sweep& sweep, std::vector<double> SweepPoint::*values, double scale) {
  Figure figure{.subtitle = sweep.title, .x = {.label = sweep.x_label, .doubling = sweep.doubling}};
  figure.width = 640;
  figure.height = 400;
  for (const SweepSeries& series : sweep.series) {
    const bool alone = sweep.series.size() == 1;
    batchrpc_examples::Series line{.name = alone ? "" : series.name, .marker_size = 6};
    for (const SweepPoint& point : series.points) {
      const auto quartiles = batchrpc_examples::percentiles(point.*values, {25, 50, 75});
      line.band_lower.push_back({point.x, quartiles[0] * scale});
      line.points.push_back({point.x, quartiles[1] * scale});
      line.band_upper.push_back({point.x, quartiles[2] * scale});
    }
    figure.series.push_back(std::move(line));
  }
  return figure;
}

void write(const Figure& figure, const std::string& path) {
  batchrpc_examples::write_svg(figure, path + ".svg");
  batchrpc_examples::write_png(figure, path + ".png");
}

}  // namespace

void append_rows(const Sweep& sweep, nlohmann::json& rows) {
  for (const SweepSeries& series : sweep.series) {
    for (const SweepPoint& point : series.points) {
      rows.push_back({{"sweep", sweep.name},
                      {"callers", sweep.title},
                      {"series", series.name},
                      {"x", point.x},
                      {"rows_per_s", rounds_json(point.rows_per_s)},
                      {"p50_us", rounds_json(point.p50_us)},
                      {"p99_us", rounds_json(point.p99_us)},
                      {"mean_batch", rounds_json(point.mean_batch)}});
    }
  }
}

void draw(const Sweep& sweep, const std::string& folder) {
  const std::string path = folder + "/batching_" + sweep.name;
  Figure rate = figure_of(sweep, &SweepPoint::rows_per_s, 1e-3);
  rate.title = "Throughput against " + sweep.name;
  rate.y.label = "thousand rows per second";
  write(rate, path + "_rate");
  Figure latency = figure_of(sweep, &SweepPoint::p99_us, 1e-3);
  latency.title = "Latency against " + sweep.name;
  latency.y.label = "p99, ms";
  write(latency, path + "_p99");
}

}  // namespace batch_benchmark
