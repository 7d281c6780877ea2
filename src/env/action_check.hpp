#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "batchrpc/env/env.hpp"

namespace batchrpc::env {

/// Throws InvalidArgument for the first action that the spec does not allow. `actions` are whole
/// actions at any address. Action i is not checked if `skip(i)` is true; with null, all are
/// checked.
void require_allowed(const EnvSpec& spec, std::span<const std::byte> actions,
                     const std::function<bool(std::size_t)>& skip = nullptr);

}  // namespace batchrpc::env
