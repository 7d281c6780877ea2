#pragma once

#include <nlohmann/json_fwd.hpp>

namespace batchrpc_examples {

/// What a report says of where it was made: `cpu`, `cpus` (that this process may use),
/// `memory_gib`, `system`.
nlohmann::json machine_report();

}  // namespace batchrpc_examples
