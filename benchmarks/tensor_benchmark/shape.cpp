#include "tensor_benchmark/shape.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tensor_benchmark {

namespace {

constexpr std::array kUnits{std::pair{'G', 30}, std::pair{'M', 20}, std::pair{'K', 10}};
constexpr std::uint64_t kLeast = 512;
constexpr std::uint64_t kMost = std::uint64_t{1} << 30;

}  // namespace

std::uint64_t moved_bytes(const Case& which) {
  return which.mode == Mode::echo ? 2 * which.bytes : which.bytes;
}

std::uint64_t needed_memory(const Case& which) {
  const auto window = static_cast<std::uint64_t>(which.window);
  std::uint64_t tensors = 2 + window;                   // sent, kept, and arriving
  if (which.mode == Mode::echo) tensors += 2 * window;  // returned, and received into
  if (!which.contiguous) tensors += window;
  return tensors * which.bytes;
}

std::string_view to_string(Mode mode) { return mode == Mode::echo ? "echo" : "push"; }

std::string_view to_string(Receive receive) {
  switch (receive) {
    case Receive::fresh:
      return "fresh";
    case Receive::into:
      return "into";
    case Receive::reused:
      break;
  }
  return "reused";
}

std::string_view to_string(Handlers handlers) {
  return handlers == Handlers::short_ones ? "short" : "workers";
}

std::string bytes_text(std::uint64_t bytes) {
  for (const auto& [letter, shift] : kUnits) {
    const std::uint64_t unit = std::uint64_t{1} << shift;
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + letter;
  }
  return std::to_string(bytes);
}

std::uint64_t parse_bytes(std::string_view text) {
  std::string_view digits = text;
  int shift = 0;
  for (const auto& [letter, unit] : kUnits) {
    if (!text.empty() && text.back() == letter) {
      shift = unit;
      digits.remove_suffix(1);
    }
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || value > (kMost >> shift) || (value << shift) < kLeast ||
      (value << shift) % 8 != 0) {
    throw std::invalid_argument("'" + std::string(text) +
                                "' is not a number of bytes from 512 to 1G and a multiple of 8");
  }
  return value << shift;
}

}  // namespace tensor_benchmark
