#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// The importance of a line. As a node's setting: the lowest level that is logged; `off` logs
/// nothing.
enum class LogLevel : unsigned char { debug, info, warning, error, off };

/// Takes a line without its line end. Control characters, bytes that are not UTF-8 and characters
/// that change the direction of text are escaped in it. Several threads may call it at once. It
/// must not block for long or call the node. Exceptions that it throws are dropped.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// A node's log. Lines at or above a level go to a sink, by default to standard error through
/// spdlog. Copies share the sink. Thread-safe.
class BATCHRPC_EXPORT Log {
 public:
  /// A null `sink` means standard error. Every line begins with `prefix`, such as the node's name.
  explicit Log(LogLevel level = LogLevel::warning, LogSink sink = nullptr, std::string prefix = {});

  /// Whether a line of `level` would be logged. Ask before you compose an expensive line.
  [[nodiscard]] bool enabled(LogLevel level) const noexcept {
    return level >= level_ && level != LogLevel::off;
  }
  /// Passes a line, without its line end, to the sink on the calling thread. Drops exceptions of
  /// the sink.
  void write(LogLevel level, std::string_view line) const;

  /// Writes a line with the level of that name.
  /// @{
  void debug(std::string_view line) const { write(LogLevel::debug, line); }
  void info(std::string_view line) const { write(LogLevel::info, line); }
  void warning(std::string_view line) const { write(LogLevel::warning, line); }
  void error(std::string_view line) const { write(LogLevel::error, line); }
  /// @}

 private:
  LogLevel level_;
  std::shared_ptr<const LogSink> sink_;
  std::string prefix_;
};

}  // namespace batchrpc
