#pragma once

#include <optional>
#include <string>
#include <vector>

#include "call_benchmark/shape.hpp"
#include "common/command_line.hpp"

namespace call_benchmark {

using batchrpc_examples::UsageError;

/// What a child process of the benchmark does, instead of measuring.
enum class Role : unsigned char {
  measure,            ///< the program that the user has started
  floor_server,       ///< answers the floor's messages
  node_server,        ///< a node that answers calls
  many_nodes,         ///< a root and `count` more nodes, for the memory of connections
  calling_node,       ///< joins them and calls each: memory on the calling side
  called_node,        ///< a root that `count` nodes join and call: memory on the other side
  joining_nodes,      ///< `count` nodes that join `address` and call it
  pestered_server,    ///< a node_server that does not warn of the strangers that come to it
  strangers,          ///< strangers of the kind `count`, who come to `address`
  overloaded_server,  ///< a node of slow functions; `count`: whether it has call_limits
  pending_calls       ///< a node that joins `address` and makes `count` calls there
};

struct Options {
  std::vector<Transport> transports{Transport::tcp, Transport::unix_socket, Transport::inproc};
  std::vector<Case> cases{Case::payload64, Case::scalars3};
  std::vector<Shape> shapes{{1, 1}, {1, 64}, {1, 256}, {64, 1}};
  std::vector<bool> pinned{true, false};
  std::vector<Handlers> handlers{Handlers::short_ones, Handlers::on_workers};
  std::vector<Style> styles{Style::get, Style::then};
  std::vector<Floor> floors{Floor::blocking, Floor::busy, Floor::frame_sized};
  /// Whether a Profiler records one in so many calls; 0: none does.
  std::vector<int> profilers{0};
  /// Of one sample. Of the watch with `idle`, and then 5 by default; with `strangers`, 1; with
  /// `overload`, 10.
  double seconds = 0.2;
  int rounds = 5;
  /// In microseconds, of client and server; more than 0: the floor that polls is the measure.
  int busy_poll = 0;
  std::string json{};  ///< a path that can be written; empty: none
  bool memory = false;
  bool idle = false;
  bool strangers = false;
  bool overload = false;

  Role role = Role::measure;
  int line_file = -1;     ///< where a child writes lines to its parent
  std::string address{};  ///< of the node that a child joins
  int count = 0;
};

/// Nothing when help was asked for, which it prints. Throws UsageError.
std::optional<Options> parse_options(int argc, const char* const* argv);

/// The arguments that make a child of this program.
std::vector<std::string> child_arguments(Role role, Transport transport, int line_file,
                                         const std::string& address = {}, int count = 0,
                                         int busy_poll = 0);

}  // namespace call_benchmark
