#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/base/histogram.hpp"

namespace batchrpc {

/// Appends metrics in the text format of Prometheus, version 0.0.4: of each first family(), then
/// all of its samples. Values of labels may be any bytes: each that is not UTF-8, of which a
/// scraper would refuse all that is there, becomes U+FFFD.
/// (https://prometheus.io/docs/instrumenting/exposition_formats/)
class PrometheusWriter {
 public:
  struct Label {
    std::string_view name;
    std::string_view value;
  };
  using Labels = std::initializer_list<Label>;

  explicit PrometheusWriter(std::string& out) : out_(out) {}

  /// Begins a metric; nothing is written for one without samples.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, std::uint64_t value);
  void sample(Labels labels, double value);
  /// Of a histogram: its numbers times `scale` are those of the metric, whose buckets end at
  /// `bounds`. A bucket of the histogram that lies across a bound counts below it: that is off by
  /// 3 % of the bound at the most.
  void histogram(Labels labels, const Histogram& numbers, std::span<const double> bounds,
                 double scale);

  /// Ends of buckets: 1, 2, 5 times the powers of ten from a microsecond to 100 s.
  [[nodiscard]] static std::span<const double> seconds() noexcept;
  /// Powers of two, from 1 to 65536.
  [[nodiscard]] static std::span<const double> sizes() noexcept;

 private:
  void begin(std::string_view suffix, Labels labels, std::string_view bound = {});

  std::string& out_;
  std::string name_;
  std::string head_;  // until a sample is written
};

}  // namespace batchrpc
