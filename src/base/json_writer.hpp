#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Appends JSON (RFC 8259), without blanks, to a string that the caller owns. The caller must pair
/// keys with values and end what it begins. Between two values of the outermost level, the writer
/// may be replaced by a new one.
class BATCHRPC_EXPORT JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  /// Writes a member's name. Write its value next.
  void key(std::string_view name) {
    value(name);
    out_ += ':';
    comma_ = false;
  }

  /// Writes a string. Each byte that is not UTF-8 becomes U+FFFD. Characters that are not plain
  /// text, such as ESC and those that change the direction of text, are escaped.
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
  /// Writes the shortest text that reads back as `number`; null if it is infinite or not a number.
  void value(double number) {
    if (std::isfinite(number)) {
      digits(number);
    } else {
      raw("null");
    }
  }
  /// Writes `number` thousandths with three decimals, for example nanoseconds as microseconds.
  void thousandths(std::int64_t number);
  /// Writes `json` as it is.
  void raw(std::string_view json) {
    separate();
    out_ += json;
  }

  /// Writes a key and its value.
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
  bool comma_ = false;  // the next value needs a comma before it
};

}  // namespace batchrpc
