#pragma once

#include "batchrpc/batch/batch_core.hpp"

namespace batchrpc::detail {

/// How many rows a batch, and so a call, has at most; and the option that says so.
struct LargestBatch {
  std::size_t rows;
  const char* option;
};
[[nodiscard]] LargestBatch largest_batch(const BatchOptions& options) noexcept;

/// Throws InvalidArgument that names the option which is out of its range, or two that exclude each
/// other, or one that this batcher's types do not allow.
void check_options(const BatchOptions& options, const BatchWork& work);

/// Throws InvalidArgument that names the option which differs and cannot be changed.
void check_change(const BatchOptions& from, const BatchOptions& to);

/// Throws InvalidArgument for a name that `host` will never know; `what` names it.
void check_peer(const std::string& what, const std::string& peer, const Host& host);
/// Throws InvalidArgument for options that are about peers, which only a node knows.
void check_knows_peers(const BatchOptions& options, bool has_node);
/// Does both: for the names in all_of, and for any group where `host` is no node's.
void check_group(const BatchOptions& options, const Host& host);

}  // namespace batchrpc::detail
