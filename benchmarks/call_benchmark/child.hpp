#pragma once

#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"
#include "common/talking_child.hpp"

namespace call_benchmark {

/// A child process of this program, with a role.
class Child : public batchrpc_benchmarks::TalkingChild {
 public:
  explicit Child(Role role, Transport transport, const std::string& address = {}, int count = 0,
                 int busy_poll = 0)
      : TalkingChild([&](int line_file) {
          return child_arguments(role, transport, line_file, address, count, busy_poll);
        }) {}

  /// The next line. Throws Interrupted, and std::runtime_error if the child ends or takes
  /// longer than half a minute.
  std::string read_line(Interrupt& interrupt) {
    return TalkingChild::read_line([&] { interrupt.check(); });
  }
};

/// Runs a child until it is ended or, for some roles, until it has finished. Returns the exit code.
int run_child(const Options& options);

}  // namespace call_benchmark
