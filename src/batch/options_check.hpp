#pragma once

#include "batchrpc/batch/batch_core.hpp"

namespace batchrpc::detail {

/// The most rows of a batch, and so of a call, with the option that sets it.
struct LargestBatch {
  std::size_t rows;
  const char* option;
};
[[nodiscard]] LargestBatch largest_batch(const BatchOptions& options) noexcept;

/// Throws InvalidArgument, naming the option, if one is out of range, two exclude each other, or
/// this batcher's types do not allow one.
void check_options(const BatchOptions& options, const BatchWork& work);

/// Throws InvalidArgument, naming the option, if it differs and cannot be changed.
void check_change(const BatchOptions& from, const BatchOptions& to);

/// Throws InvalidArgument for options about peers, which only a node knows.
void check_has_node(const BatchOptions& options, bool has_node);
/// Throws InvalidArgument for options that `host` does not support: a name in all_of that it will
/// never know, any name if the host is not a node, and a parallelism that conflicts with its lock.
void check_host(const BatchOptions& options, const Host& host);

}  // namespace batchrpc::detail
