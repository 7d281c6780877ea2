#pragma once

#include <batchrpc/env/env.hpp>
#include <memory>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// The names for make_env(), in order: cartpole, minatar-breakout, pixels.
std::vector<std::string> env_names();

/// Makes a new environment with that name. For another name, throws a batchrpc::InvalidArgument
/// that lists the names.
std::unique_ptr<batchrpc::Env> make_env(const std::string& name);

}  // namespace batchrpc_examples
