#include "env/reply_size.hpp"

#include <algorithm>

#include "env/step_messages.hpp"

namespace batchrpc::env {
namespace {

constexpr std::uint64_t kMostObservationBytes = std::uint64_t{1} << 30;
// The size of a frame's header and of the headers of its lists.
constexpr std::uint64_t kAroundRows = 4096;

}  // namespace

std::size_t most_steps(const StepShape& step, const MessageLimits& limits) noexcept {
  // A row's bytes in the frame; in each step each environment may end an episode.
  const std::uint64_t in_frame = sizeof(float) + sizeof(std::uint8_t) + sizeof(std::uint32_t) +
                                 sizeof(EpisodeEnd) + sizeof(std::uint64_t) +
                                 step.extras * sizeof(float);
  // A row's bytes in payloads; each observation may also be a final one.
  const std::uint64_t beside = 2 * step.observation_bytes + step.action_bytes;
  const auto steps_of = [&](std::uint64_t limit, std::uint64_t row) {
    return limit / step.envs / std::max<std::uint64_t>(row, 1);
  };
  return std::min({steps_of(kMostObservationBytes, step.observation_bytes),
                   steps_of(limits.payload_bytes, beside),
                   steps_of(limits.frame_bytes - kAroundRows, in_frame)});
}

}  // namespace batchrpc::env
