#include "batchrpc/base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/plain_text.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kLongestLine = 16 << 10;  // no line of the library comes near

spdlog::level::level_enum spdlog_level(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

// The logger is not registered with spdlog, because a library must not change the program's
// logging.
LogSink standard_error() {
  auto logger = std::make_shared<spdlog::logger>("batchrpc",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::trace);
  return [logger](LogLevel level, std::string_view line) {
    logger->log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  };
}

}  // namespace

Log::Log(LogLevel level, LogSink sink, std::string prefix)
    : level_(level),
      sink_(std::make_shared<const LogSink>(sink ? std::move(sink) : standard_error())),
      prefix_(std::move(prefix)) {
  if (!prefix_.empty()) prefix_ += ": ";
}

void Log::write(LogLevel level, std::string_view line) const {
  if (!enabled(level)) return;
  // The line may contain strings that came from peers. Here alone they are made fit for a terminal.
  try {
    (*sink_)(level, escaped(prefix_ + std::string(line), kLongestLine));
  } catch (...) {  // the node does not depend on the log
  }
}

}  // namespace batchrpc
