#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/transport.hpp"

namespace tensor_benchmark {

using batchrpc_benchmarks::Transport;

/// echo: a call gives the tensor back that it takes. push: it takes a tensor, and gives nothing.
enum class Mode : unsigned char { echo, push };

/// What the last to receive a tensor has it in: memory of its own each time, as the library gives
/// it; the caller's tensor, by call_into; or, of a floor, one buffer.
enum class Receive : unsigned char { fresh, into, reused };

/// Where the server runs its functions (batchrpc::ExposeOptions::short_handler).
enum class Handlers : unsigned char { on_workers, short_ones };

/// What is measured by the rows of a group.
struct Case {
  Transport transport = Transport::tcp;
  Mode mode = Mode::echo;
  std::uint64_t bytes = 0;  ///< of the tensor
  int window = 1;           ///< calls under way
  bool contiguous = true;   ///< or a transposed view
  bool pinned = false;      ///< all threads of both sides on one CPU

  friend bool operator==(const Case&, const Case&) = default;
};

/// Payload bytes that a call moves: of an echo those of both ways.
std::uint64_t moved_bytes(const Case& which);

/// About what the two processes need for the tensors under way, in bytes.
std::uint64_t needed_memory(const Case& which);

/// As on the command line: "echo", "fresh", "workers", "64K".
std::string_view to_string(Mode mode);
std::string_view to_string(Receive receive);
std::string_view to_string(Handlers handlers);
std::string bytes_text(std::uint64_t bytes);

/// What bytes_text() and a plain number mean, K, M and G being powers of 1024: a number of bytes
/// from 512 to 1G that makes a matrix of floats, so a multiple of 8. Throws std::invalid_argument
/// that says so.
std::uint64_t parse_bytes(std::string_view text);

}  // namespace tensor_benchmark
