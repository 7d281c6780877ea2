#pragma once

#include <vector>

#include "batchrpc/trace/call_record.hpp"

namespace batchrpc::profile {

/// For each operator its time without that of those that ran within it, on its thread.
[[nodiscard]] std::vector<Duration> self_times(const std::vector<OperatorRecord>& operators);

}  // namespace batchrpc::profile
