#include "batchrpc/trace/trace_context.hpp"

#include <span>

#include "base/hex.hpp"

namespace batchrpc {
namespace {

// "00-<trace id>-<span id>-<flags>"
constexpr std::size_t kTraceId = 3;
constexpr std::size_t kSpanId = 36;
constexpr std::size_t kFlags = 53;
constexpr std::size_t kLength = 55;

constexpr std::uint8_t kRecorded = 1;  // level 1 knows no other flag and sends zero for the rest

// Rejects upper case, which is malformed.
bool read_hex(std::string_view text, std::span<std::uint8_t> into) noexcept {
  const auto digit = [](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    return 16;
  };
  for (std::size_t i = 0; i < into.size(); ++i) {
    const unsigned high = digit(text[2 * i]);
    const unsigned low = digit(text[2 * i + 1]);
    if (high > 15 || low > 15) return false;
    into[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace

std::uint64_t TraceContext::span_number() const noexcept {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : span_id)
    number = number << 8 | byte;
  return number;
}

std::string TraceContext::traceparent() const {
  std::string text;
  text.reserve(kLength);
  text += "00-";
  append_hex(text, trace_id);
  text += '-';
  append_hex(text, span_id);
  text += (flags & kRecorded) != 0 ? "-01" : "-00";
  return text;
}

std::optional<TraceContext> TraceContext::parse(std::string_view traceparent) noexcept {
  if (traceparent.size() < kLength) return std::nullopt;
  if (traceparent[kTraceId - 1] != '-' || traceparent[kSpanId - 1] != '-' ||
      traceparent[kFlags - 1] != '-') {
    return std::nullopt;
  }
  std::uint8_t version = 0;
  if (!read_hex(traceparent, {&version, 1}) || version == 0xFF) return std::nullopt;
  if (traceparent.size() > kLength && (version == 0 || traceparent[kLength] != '-')) {
    return std::nullopt;
  }
  TraceContext context;
  if (!read_hex(traceparent.substr(kTraceId), context.trace_id) ||
      !read_hex(traceparent.substr(kSpanId), context.span_id) ||
      !read_hex(traceparent.substr(kFlags), {&context.flags, 1}) || !context.valid()) {
    return std::nullopt;
  }
  context.flags &= kRecorded;
  return context;
}

}  // namespace batchrpc
