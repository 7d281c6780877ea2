#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// How much a line matters. As a node's setting: the least that is logged, `off` for nothing.
enum class LogLevel : unsigned char { debug, info, warning, error, off };

/// Takes a line, without its end; control characters are replaced. Called on any thread, several at
/// once; must not block for long, or call the node. What it throws is dropped.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// A node's log: lines at or above a level go to a sink, by default standard error through spdlog.
/// Copying shares the sink. Thread-safe.
class BATCHRPC_EXPORT Log {
 public:
  /// A null `sink` means standard error. `prefix` (the node's name, say) begins every line.
  explicit Log(LogLevel level = LogLevel::warning, LogSink sink = nullptr, std::string prefix = {});

  /// Whether a line of `level` would be logged: asked before one is put together that costs time.
  [[nodiscard]] bool enabled(LogLevel level) const noexcept {
    return level >= level_ && level != LogLevel::off;
  }
  /// Hands a line, without its end, to the sink, on the calling thread. Never throws what the sink
  /// throws.
  void write(LogLevel level, std::string_view line) const;

  /// The same by level.
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
