#pragma once

#include <vector>

#include "batchrpc/trace/call_record.hpp"

namespace batchrpc::profile {

/// Returns each operator's time without that of the operators inside it, on its thread.
[[nodiscard]] std::vector<Duration> self_times(const std::vector<OperatorRecord>& operators);

}  // namespace batchrpc::profile
