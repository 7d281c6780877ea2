#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/base/histogram.hpp"

namespace batchrpc {

/// Writes metrics in the text format of Prometheus, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/). For each metric, call family()
/// first and then write all of its samples. Label values may be any bytes. Each byte that is not
/// UTF-8 becomes U+FFFD, because a scraper would reject the whole page.
class PrometheusWriter {
 public:
  struct Label {
    std::string_view name;
    std::string_view value;
  };
  using Labels = std::initializer_list<Label>;

  explicit PrometheusWriter(std::string& out) : out_(out) {}

  /// Begins a metric. Nothing is written for a metric without samples.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, std::uint64_t value);
  void sample(Labels labels, double value);
  /// Writes a histogram whose numbers are multiplied by `scale`; the buckets of the metric end at
  /// `bounds`. A bucket of `numbers` that spans a bound is counted below it. The error is at most 3
  /// % of the bound.
  void histogram(Labels labels, const Histogram& numbers, std::span<const double> bounds,
                 double scale);

  /// Bucket ends: 1, 2 and 5 times each power of ten from a microsecond to 100 s.
  [[nodiscard]] static std::span<const double> seconds() noexcept;
  /// Bucket ends: powers of two from 1 to 65536.
  [[nodiscard]] static std::span<const double> sizes() noexcept;

 private:
  void begin(std::string_view suffix, Labels labels, std::string_view bound = {});

  std::string& out_;
  std::string name_;
  std::string head_;  // kept until a sample is written
};

}  // namespace batchrpc
