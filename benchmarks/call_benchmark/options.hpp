#pragma once

#include <optional>
#include <string>
#include <vector>

#include "call_benchmark/shape.hpp"
#include "common/command_line.hpp"

namespace call_benchmark {

using batchrpc_examples::UsageError;

/// The work of a child process of the benchmark, instead of measuring.
enum class Role : unsigned char {
  measure,            ///< the program that the user started
  floor_server,       ///< answers the floor's messages
  node_server,        ///< a node that answers calls
  many_nodes,         ///< a root and `count` more nodes, for the memory of connections
  calling_node,       ///< joins them and calls each: memory on the calling side
  called_node,        ///< a root that `count` nodes join and call: memory on the other side
  joining_nodes,      ///< `count` nodes that join `address` and call it
  pestered_server,    ///< a node_server that does not log warnings about strangers
  strangers,          ///< strangers of the kind `count`, which connect to `address`
  overloaded_server,  ///< a node with slow functions; `count`: whether it has call_limits
  pending_calls       ///< a node that joins `address` and makes `count` calls there
};

struct Options {
  std::vector<Transport> transports{Transport::tcp, Transport::tls, Transport::unix_socket,
                                    Transport::inproc};
  std::vector<Case> cases{Case::payload64, Case::scalars3};
  std::vector<Shape> shapes{{1, 1}, {1, 64}, {1, 256}, {64, 1}};
  std::vector<bool> pinned{true, false};
  std::vector<Handlers> handlers{Handlers::short_ones, Handlers::on_workers};
  std::vector<Style> styles{Style::get, Style::then};
  std::vector<Floor> floors{Floor::blocking, Floor::busy, Floor::frame_sized};
  /// A Profiler records one in this many calls; 0: no Profiler.
  std::vector<int> profilers{0};
  /// Seconds per sample. For `idle` the whole measurement, 5 by default; for `strangers` 1, for
  /// `overload` 10 by default.
  double seconds = 0.2;
  int rounds = 5;
  /// In microseconds, for client and server. If above 0, ratios are relative to the floor that
  /// polls.
  int busy_poll = 0;
  std::string json{};  ///< writable path; empty: none
  bool memory = false;
  bool idle = false;
  bool strangers = false;
  bool overload = false;

  Role role = Role::measure;
  int line_file = -1;     ///< the descriptor to which a child writes lines for its parent
  std::string address{};  ///< address of the node that a child joins
  int count = 0;
};

/// Parses the command line. Returns nothing after it has printed help. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The command line of a child of this program.
std::vector<std::string> child_arguments(Role role, Transport transport, int line_file,
                                         const std::string& address = {}, int count = 0,
                                         int busy_poll = 0);

}  // namespace call_benchmark
