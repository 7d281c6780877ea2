#pragma once

#include "batchrpc/batch/batch_core.hpp"

namespace batchrpc::detail {

/// Throws InvalidArgument that names the option which is out of its range, or two that exclude each
/// other, or one that this batcher's types do not allow.
void check_options(const BatchOptions& options, const BatchWork& work);

/// Throws InvalidArgument that names the option which differs and cannot be changed.
void check_change(const BatchOptions& from, const BatchOptions& to);

/// Throws InvalidArgument for a name that `host` will never know; `what` names it.
void check_peer(const std::string& what, const std::string& peer, const Host& host);
/// The same for a name in all_of; and for any group, where `host` is no node's.
void check_group(const BatchOptions& options, const Host& host);

}  // namespace batchrpc::detail
