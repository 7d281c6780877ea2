#include "env/batch_assembly.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "env/batch_memory.hpp"

namespace batchrpc::env {
namespace {

template <class T>
void copy_rows(const std::vector<T>& from, std::vector<T>& to, std::size_t at) {
  std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(at));
}

void make_room(EnvBatch& batch, const StepShape& shape, bool rollout, PayloadMemory& memory) {
  const std::size_t rows = batch.rows();
  batch.rewards.resize(rows);
  batch.terminated.resize(rows);
  batch.truncated.resize(rows);
  batch.started.resize(rows);
  batch.valid.resize(rows);
  batch.env_ids.resize(batch.groups * batch.envs);
  batch.sources.resize(batch.groups);
  if (!rollout) return;
  batch.actions = memory.allocate(rows * shape.action_bytes);
  std::memset(batch.actions.mutable_data(), 0, batch.actions.size());
  batch.extras.resize(rows * shape.extras);
  batch.versions.resize(batch.groups * batch.steps);
}

Bytes observations_of(const BatchPart& part, std::size_t bytes, PayloadMemory& memory) {
  if (part.steps == 0 || part.observations.size() == bytes) return part.observations;
  Bytes all = memory.allocate(bytes);
  const std::size_t before = bytes - part.observations.size();
  std::memset(all.mutable_data(), 0, before);
  std::memcpy(all.mutable_data() + before, part.observations.data(), part.observations.size());
  return all;
}

// Adds everything except the observations.
void add(EnvBatch& batch, std::size_t place, const BatchPart& part, const StepShape& shape) {
  for (std::size_t i = 0; i < batch.envs; ++i)
    batch.env_ids[place * batch.envs + i] = static_cast<std::int64_t>(part.first_id + i);
  batch.sources[place] = part.source;
  const std::size_t first = (place * batch.steps + batch.steps - part.steps) * batch.envs;
  const StepReply& reply = part.reply;
  copy_rows(reply.rewards, batch.rewards, first);
  for (std::size_t i = 0; i < reply.flags.size(); ++i) {
    batch.terminated[first + i] = (reply.flags[i] & kTerminated) != 0 ? 1 : 0;
    batch.truncated[first + i] = (reply.flags[i] & kTruncated) != 0 ? 1 : 0;
    batch.started[first + i] = (reply.flags[i] & kStarted) != 0 ? 1 : 0;
    batch.valid[first + i] = 1;
  }
  for (const std::uint32_t row : reply.final_rows)
    batch.final_rows.push_back(first + row);
  for (const EpisodeEnd& end : reply.episodes) {
    batch.episodes.push_back(
        {.row = first + end.row,
         .env = static_cast<std::int64_t>(part.first_id + end.row % batch.envs),
         .total_reward = end.total_reward,
         .length = end.length});
  }
  if (!part.rollout) return;
  std::memcpy(batch.actions.mutable_data() + first * shape.action_bytes, reply.actions.data(),
              reply.actions.size());
  copy_rows(reply.extras, batch.extras, first * shape.extras);
  copy_rows(reply.versions, batch.versions, first / batch.envs);
}

}  // namespace

EnvBatch assemble(const std::vector<BatchPart>& parts, const StepShape& shape,
                  std::shared_ptr<const EnvSpec> spec, PayloadMemory& memory) {
  EnvBatch batch;
  batch.groups = parts.size();
  batch.envs = shape.envs;
  batch.spec = std::move(spec);
  std::size_t finals = 0;
  for (const BatchPart& part : parts) {
    batch.steps = std::max(batch.steps, part.steps);
    finals += part.reply.final_observations.size();
  }
  make_room(batch, shape, std::ranges::any_of(parts, &BatchPart::rollout), memory);

  const std::size_t bytes = batch.steps * batch.envs * shape.observation_bytes;
  std::vector<Bytes> observations;
  batch.final_observations = memory.allocate(finals);
  std::byte* next_final = batch.final_observations.mutable_data();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    observations.push_back(observations_of(parts[i], bytes, memory));
    const Bytes& of_part = parts[i].reply.final_observations;
    if (!of_part.empty()) next_final = std::ranges::copy(of_part.span(), next_final).out;
    add(batch, i, parts[i], shape);
  }
  batch.observations = join(observations, bytes, memory);
  return batch;
}

}  // namespace batchrpc::env
