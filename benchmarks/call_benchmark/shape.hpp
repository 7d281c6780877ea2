#pragma once

#include <string>
#include <string_view>

#include "common/transport.hpp"

namespace call_benchmark {

using batchrpc_benchmarks::Transport;

/// The data of a call: 64 bytes each way, or three numbers there and one back.
enum class Case : unsigned char { payload64, scalars3 };

/// Where the callee runs the function (batchrpc::ExposeOptions::short_handler).
enum class Handlers : unsigned char { short_ones, on_workers };

/// How the caller takes results: with a blocking get() on the oldest of a window of calls, or with
/// then(), whose callback makes the next call.
enum class Style : unsigned char { get, then };

/// The programs on bare sockets. Ratios are relative to the blocking one with 64-byte messages. The
/// others are for information: one never sleeps, and one has messages as long as batchrpc's frames.
enum class Floor : unsigned char { blocking, busy, frame_sized };

/// The number of calls in flight: `in_flight` on each of `connections`.
struct Shape {
  int connections = 1;
  int in_flight = 1;

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// The names on the command line: "payload64", "short", "get", "blocking", "64", "64x1".
std::string_view to_string(Case which);
std::string_view to_string(Handlers handlers);
std::string_view to_string(Style style);
std::string_view to_string(Floor floor);
std::string to_string(const Shape& shape);

}  // namespace call_benchmark
