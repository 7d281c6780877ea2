#pragma once

#include <batchrpc/batchrpc.hpp>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "call_benchmark/floor.hpp"
#include "call_benchmark/shape.hpp"
#include "common/node_pair.hpp"
#include "common/resident_memory.hpp"

/// The functions that the benchmark's nodes call.
namespace call_benchmark {

constexpr std::size_t kPayloadBytes = 64;
using batchrpc_benchmarks::kServer;

using Payload = std::vector<std::byte>;

/// Returns its argument. There are two, because a function is a short handler for all its callers
/// or for none.
Payload echo_short(std::span<const std::byte> payload);
Payload echo_on_workers(std::span<const std::byte> payload);

/// Returns factor * value + offset.
double scale_short(double factor, std::int64_t value, std::int32_t offset);
double scale_on_workers(double factor, std::int64_t value, std::int32_t offset);

/// Holds calls without an answer until they are released, to measure the memory of pending calls.
class Held {
 public:
  /// Reserves room for `count` calls, and touches its memory.
  void reserve(std::int32_t count);
  batchrpc::Future<std::int32_t> hold(std::int32_t value);
  [[nodiscard]] std::int32_t count();
  void release();

 private:
  std::mutex mutex_;
  std::vector<batchrpc::Promise<std::int32_t>> promises_;
};

using batchrpc_examples::resident_bytes;

/// Exposes all of these functions.
void expose_functions(const batchrpc::Node& node);

/// The lengths of the frames of such a call and of its reply.
MessageSizes frame_sizes(Case which);

}  // namespace call_benchmark
