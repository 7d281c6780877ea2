#pragma once

#include <batchrpc/env/env.hpp>
#include <memory>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// Names of make_env(), in order: cartpole, minatar-breakout, pixels.
std::vector<std::string> env_names();

/// A new environment of that name. Throws batchrpc::InvalidArgument for another name; it lists
/// those that there are.
std::unique_ptr<batchrpc::Env> make_env(const std::string& name);

}  // namespace batchrpc_examples
