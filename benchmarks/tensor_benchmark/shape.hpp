#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/transport.hpp"

namespace tensor_benchmark {

using batchrpc_benchmarks::Transport;

/// echo: a call returns the tensor that it receives. push: it receives a tensor and returns
/// nothing.
enum class Mode : unsigned char { echo, push };

/// Where the final receiver has a tensor: in new memory each time, as the library provides it; in
/// the caller's tensor, with call_into; or, for a floor, in one buffer.
enum class Receive : unsigned char { fresh, into, reused };

/// Where the server runs its functions (batchrpc::ExposeOptions::short_handler).
enum class Handlers : unsigned char { on_workers, short_ones };

/// The case that the rows of a group measure.
struct Case {
  Transport transport = Transport::tcp;
  Mode mode = Mode::echo;
  std::uint64_t bytes = 0;  ///< size of the tensor
  int window = 1;           ///< calls in flight
  bool contiguous = true;   ///< else a transposed view
  bool pinned = false;      ///< all threads of both sides on one CPU

  friend bool operator==(const Case&, const Case&) = default;
};

/// The payload bytes that a call moves; for an echo both ways.
std::uint64_t moved_bytes(const Case& which);

/// Roughly the bytes that the two processes need for the tensors in flight.
std::uint64_t needed_memory(const Case& which);

/// The names on the command line: "echo", "fresh", "workers", "64K".
std::string_view to_string(Mode mode);
std::string_view to_string(Receive receive);
std::string_view to_string(Handlers handlers);
std::string bytes_text(std::uint64_t bytes);

/// Parses a number of bytes from 512 to 1G, plain or as bytes_text() writes it; K, M and G are
/// powers of 1024. It must be a multiple of 8, to make a matrix of floats. Throws
/// std::invalid_argument, which says so.
std::uint64_t parse_bytes(std::string_view text);

}  // namespace tensor_benchmark
