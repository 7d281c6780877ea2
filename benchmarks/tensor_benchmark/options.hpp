#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor_benchmark/shape.hpp"

namespace tensor_benchmark {

/// The work of a child process of the benchmark, instead of measuring.
enum class Role : unsigned char {
  measure,       ///< the program that the user started
  floor_server,  ///< answers the floor's messages
  node_server    ///< a node that answers calls
};

struct Options {
  std::vector<Mode> modes{Mode::echo, Mode::push};
  std::vector<std::uint64_t> bytes{1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20};
  std::vector<Transport> transports{Transport::tcp, Transport::tls, Transport::unix_socket,
                                    Transport::inproc};
  std::vector<int> windows{};  ///< empty: 1 for echoes, 8 for pushes
  std::vector<bool> contiguous{true, false};
  std::vector<bool> pinned{false};
  std::vector<Receive> receive{Receive::fresh, Receive::into};  ///< for echoes
  Handlers handlers = Handlers::on_workers;
  bool floor = true;
  double seconds = 0.3;  ///< per sample, at least
  int rounds = 3;
  std::string json{};  ///< writable path; empty: none

  Role role = Role::measure;
  int line_file = -1;    ///< the descriptor to which a child writes lines for its parent
  int counts_file = -1;  ///< for a child's CopyCounts

  [[nodiscard]] std::vector<int> windows_of(Mode mode) const;
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The command line of a child of this program.
std::vector<std::string> child_arguments(Role role, Transport transport, Handlers handlers,
                                         int line_file, int counts_file);

}  // namespace tensor_benchmark
