#pragma once

#include <nlohmann/json_fwd.hpp>

namespace batchrpc_examples {

/// A report's description of its machine: `cpu`, `cpus` (those that this process may use),
/// `memory_gib`, `system`.
nlohmann::json machine_report();

}  // namespace batchrpc_examples
