#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/process.hpp"

namespace batchrpc_benchmarks {

/// A child of the running program that writes lines to this process. It ends with this object and
/// with this process.
class TalkingChild {
 public:
  /// `arguments` makes the child's command line; the child writes its lines to the descriptor
  /// `line_file`. Throws std::system_error if it cannot be started.
  explicit TalkingChild(const std::function<std::vector<std::string>(int line_file)>& arguments);
  ~TalkingChild();
  TalkingChild(const TalkingChild&) = delete;
  TalkingChild& operator=(const TalkingChild&) = delete;

  /// The next line. `check` is called regularly and may throw to end the wait. Throws
  /// std::runtime_error if the child ends or takes longer than half a minute.
  std::string read_line(const std::function<void()>& check);

  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  /// How it ended; nothing if it still runs after `time`.
  std::optional<batchrpc_examples::ProcessExit> wait_for(std::chrono::milliseconds time) {
    return process_->wait_for(time);
  }

 private:
  int file_ = -1;
  std::string read_;
  std::optional<batchrpc_examples::ChildProcess> process_;
};

/// For a child: writes a line to its parent. Throws std::system_error.
void write_line(int line_file, const std::string& text);

/// For a child that its parent ends.
[[noreturn]] void wait_to_be_ended();

}  // namespace batchrpc_benchmarks
