#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace batchrpc {

/// Appends JSON to a text, without blanks: commas by itself, the order of calls is the caller's.
/// Bytes that are no ASCII go through as they are: JSON is UTF-8, and so are names.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }

  /// Of a member; its value follows.
  void key(std::string_view name) {
    next();
    quote(name);
    out_ += ':';
    first_ = true;
  }

  void value(std::string_view text) {
    next();
    quote(text);
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth) {
    next();
    out_ += truth ? "true" : "false";
  }
  void value(std::uint64_t number) { digits(number); }
  void value(std::int64_t number) { digits(number); }
  /// What JSON has no number for is null.
  void value(double number) {
    if (std::isfinite(number)) {
      digits(number);
    } else {
      next();
      out_ += "null";
    }
  }

 private:
  void next() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void begin(char bracket) {
    next();
    out_ += bracket;
    first_ = true;
  }
  void end(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  template <class Number>
  void digits(Number number) {
    next();
    char text[32];
    const auto end = std::to_chars(std::begin(text), std::end(text), number).ptr;
    out_.append(text, end);
  }
  void quote(std::string_view text) {
    out_ += '"';
    for (const char letter : text) {
      const auto code = static_cast<unsigned char>(letter);
      if (letter == '"' || letter == '\\') {
        out_ += '\\';
        out_ += letter;
      } else if (code < 0x20) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        out_ += "\\u00";
        out_ += kDigits[code >> 4U];
        out_ += kDigits[code & 15U];
      } else {
        out_ += letter;
      }
    }
    out_ += '"';
  }

  std::string& out_;
  bool first_ = true;  // nothing is before it in what it is in
};

}  // namespace batchrpc
