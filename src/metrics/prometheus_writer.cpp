#include "metrics/prometheus_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/plain_text.hpp"
#include "base/utf8.hpp"

namespace batchrpc {
namespace {

template <class Number>
void append(std::string& out, Number number) {
  char text[32];
  out.append(text, std::to_chars(std::begin(text), std::end(text), number).ptr);
}

void append_value(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    append(out, value);
  }
}

std::string number_text(double number) {
  std::string text;
  append(text, number);
  return text;
}

void append_label(std::string& out, std::string_view name, std::string_view value, bool& first) {
  out += first ? '{' : ',';
  first = false;
  out += name;
  out += "=\"";
  while (!value.empty()) {
    const std::size_t length = utf8_length(value);
    const std::string_view letter = value.substr(0, length == 0 ? 1 : length);
    value.remove_prefix(letter.size());
    if (length == 0) {
      out += kReplacement;
    } else if (letter == "\n") {
      out += "\\n";
    } else if (!is_plain_text(letter)) {
      constexpr std::size_t kLongestEscape = 6;
      out += '\\' + escaped(letter, kLongestEscape);  // a backslash is written as two
    } else {
      if (letter == "\\" || letter == "\"") out += '\\';
      out += letter;
    }
  }
  out += '"';
}

constexpr std::array<double, 25> kSeconds{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4,
                                          1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,  0.2,  0.5,
                                          1,    2,    5,    10,   20,   50,   100};
constexpr std::array<double, 17> kSizes{1,   2,    4,    8,    16,   32,    64,    128,  256,
                                        512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

}  // namespace

std::span<const double> PrometheusWriter::seconds() noexcept { return kSeconds; }
std::span<const double> PrometheusWriter::sizes() noexcept { return kSizes; }

void PrometheusWriter::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  head_ = "# HELP ";
  head_.append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
  head_.append(type).append("\n");
}

void PrometheusWriter::begin(std::string_view suffix, Labels labels, std::string_view bound) {
  out_ += head_;
  head_.clear();
  out_ += name_;
  out_ += suffix;
  bool first = true;
  for (const Label& label : labels)
    append_label(out_, label.name, label.value, first);
  if (!bound.empty()) append_label(out_, "le", bound, first);
  out_ += first ? " " : "} ";
}

void PrometheusWriter::sample(Labels labels, std::uint64_t value) {
  begin({}, labels);
  append(out_, value);
  out_ += '\n';
}

void PrometheusWriter::sample(Labels labels, double value) {
  begin({}, labels);
  append_value(out_, value);
  out_ += '\n';
}

void PrometheusWriter::histogram(Labels labels, const Histogram& numbers,
                                 std::span<const double> bounds, double scale) {
  const auto buckets = numbers.buckets();
  auto bucket = buckets.begin();
  std::uint64_t count = 0;
  for (const double bound : bounds) {
    // 1e-6 / 1e-9 may be a little less than 1000.
    const double most = bound / scale * (1 + 1e-12);
    for (; bucket != buckets.end() && static_cast<double>(bucket->lowest) <= most; ++bucket)
      count += bucket->count;
    begin("_bucket", labels, number_text(bound));
    append(out_, count);
    out_ += '\n';
  }
  begin("_bucket", labels, "+Inf");
  append(out_, numbers.count());
  out_ += '\n';
  begin("_sum", labels);
  append_value(out_, static_cast<double>(numbers.sum()) * scale);
  out_ += '\n';
  begin("_count", labels);
  append(out_, numbers.count());
  out_ += '\n';
}

}  // namespace batchrpc
