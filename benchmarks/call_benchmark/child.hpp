#pragma once

#include <optional>
#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"
#include "common/process.hpp"

namespace call_benchmark {

/// A child of this program, which writes lines to us. Ends with this object, and with this process.
class Child {
 public:
  Child(Role role, Transport transport, const std::string& address = {}, int count = 0);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The next line. Throws Interrupted, and std::runtime_error when the child ends or takes longer
  /// than half a minute.
  std::string read_line(Interrupt& interrupt);

  [[nodiscard]] pid_t pid() const { return process_->pid(); }

 private:
  int file_ = -1;
  std::string read_;
  std::optional<batchrpc_examples::ChildProcess> process_;
};

/// What a child does, until somebody ends it or, for some roles, by itself. Returns the exit code.
int run_child(const Options& options);

}  // namespace call_benchmark
