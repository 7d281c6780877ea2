#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor_benchmark/shape.hpp"

namespace tensor_benchmark {

/// What a child process of the benchmark does, instead of measuring.
enum class Role : unsigned char {
  measure,       ///< the program that the user has started
  floor_server,  ///< answers the floor's messages
  node_server    ///< a node that answers calls
};

struct Options {
  std::vector<Mode> modes{Mode::echo, Mode::push};
  std::vector<std::uint64_t> bytes{1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20};
  std::vector<Transport> transports{Transport::tcp, Transport::unix_socket, Transport::inproc};
  std::vector<int> windows{};  ///< empty: 1 of echoes, 8 of pushes
  std::vector<bool> contiguous{true, false};
  std::vector<bool> pinned{false};
  std::vector<Receive> receive{Receive::fresh, Receive::into};  ///< of echoes
  Handlers handlers = Handlers::on_workers;
  bool floor = true;
  double seconds = 0.3;  ///< of one sample, at least
  int rounds = 3;
  std::string json{};  ///< a path that can be written; empty: none

  Role role = Role::measure;
  int line_file = -1;    ///< where a child writes lines to its parent
  int counts_file = -1;  ///< of a child's CopyCounts

  [[nodiscard]] std::vector<int> windows_of(Mode mode) const;
};

/// Nothing when only help was asked for, which has been printed. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The arguments that make a child of this program.
std::vector<std::string> child_arguments(Role role, Transport transport, Handlers handlers,
                                         int line_file, int counts_file);

}  // namespace tensor_benchmark
