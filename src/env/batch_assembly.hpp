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

/// What a batch has of a group.
struct BatchPart {
  EnvBatch::Group source{};
  std::size_t first_id = 0;  ///< of its environments
  std::size_t steps = 0;     ///< zero: it has no rows that are valid
  bool rollout = false;
  Bytes observations{};
  StepReply reply{};  ///< but the observations
};

/// Puts a batch together, each part's rows behind those of the one before. Where they have
/// different numbers of steps, those of the ones with fewer are the last ones. Observations are
/// copied where they do not lie so already.
[[nodiscard]] EnvBatch assemble(const std::vector<BatchPart>& parts, const StepShape& shape,
                                std::shared_ptr<const EnvSpec> spec, PayloadMemory& memory);

}  // namespace batchrpc::env
