#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/env/env_batch.hpp"
#include "env/reply_size.hpp"
#include "env/step_messages.hpp"
#include "session/payload_memory.hpp"

namespace batchrpc::env {

/// A group's part of a batch.
struct BatchPart {
  EnvBatch::Group source{};
  std::size_t first_id = 0;  ///< the id of its first environment
  std::size_t steps = 0;     ///< zero: it has no valid rows
  bool rollout = false;
  Bytes observations{};
  StepReply reply{};  ///< without the observations
};

/// Puts a batch together from the parts' rows, one part after the other. If the parts have
/// different numbers of steps, those with fewer have the last ones. Observations are copied only if
/// they are not adjacent already.
[[nodiscard]] EnvBatch assemble(const std::vector<BatchPart>& parts, const StepShape& shape,
                                std::shared_ptr<const EnvSpec> spec, PayloadMemory& memory);

}  // namespace batchrpc::env
