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

/// What the benchmark's nodes call.
namespace call_benchmark {

constexpr std::size_t kPayloadBytes = 64;
using batchrpc_benchmarks::kServer;

using Payload = std::vector<std::byte>;

/// Gives the bytes back. Twice, as a function is short or not for all its callers.
Payload echo_short(std::span<const std::byte> payload);
Payload echo_on_workers(std::span<const std::byte> payload);

/// factor * value + offset.
double scale_short(double factor, std::int64_t value, std::int32_t offset);
double scale_on_workers(double factor, std::int64_t value, std::int32_t offset);

/// Calls that are not answered until somebody says so, for the memory of pending calls.
class Held {
 public:
  /// Has room for `count` calls made, and its memory touched.
  void reserve(std::int32_t count);
  batchrpc::Future<std::int32_t> hold(std::int32_t value);
  [[nodiscard]] std::int32_t count();
  void release();

 private:
  std::mutex mutex_;
  std::vector<batchrpc::Promise<std::int32_t>> promises_;
};

using batchrpc_examples::resident_bytes;

/// Exposes all of these.
void expose_functions(const batchrpc::Node& node);

/// How long the frames of such a call and its reply are.
MessageSizes frame_sizes(Case which);

}  // namespace call_benchmark
