#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Appends JSON (RFC 8259) to a string of the caller's, without blanks. That keys go with values,
/// and that what was begun is ended, is up to the caller. May be made anew between any two values
/// of the outermost level.
class BATCHRPC_EXPORT JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  /// Of a member: its value comes next.
  void key(std::string_view name) {
    value(name);
    out_ += ':';
    comma_ = false;
  }

  /// A string; each byte that is not UTF-8 becomes U+FFFD.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(std::integral auto number) {
    if constexpr (std::same_as<decltype(number), bool>) {
      raw(number ? "true" : "false");
    } else {
      digits(number);
    }
  }
  /// The shortest that is read back as this; null if it is no number, or infinite.
  void value(double number) {
    if (std::isfinite(number)) {
      digits(number);
    } else {
      raw("null");
    }
  }
  /// So many thousandths, with three decimals: nanoseconds as microseconds.
  void thousandths(std::int64_t number);
  /// What is JSON already.
  void raw(std::string_view json) {
    separate();
    out_ += json;
  }

  /// Key and value.
  template <typename T>
  void member(std::string_view name, const T& what) {
    key(name);
    value(what);
  }

 private:
  void separate() {
    if (comma_) out_ += ',';
    comma_ = true;
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
    comma_ = false;
  }
  void close(char bracket) {
    out_ += bracket;
    comma_ = true;
  }
  void digits(auto number) {
    char text[32];
    raw({text, std::to_chars(text, text + sizeof text, number).ptr});
  }

  std::string& out_;
  bool comma_ = false;  // the next value has one before it
};

}  // namespace batchrpc
