#include "batchrpc/env/vector_env.hpp"

#include <utility>

#include "env/env_driver.hpp"

namespace batchrpc {

VectorEnv::VectorEnv(const Node& node, VectorEnvOptions options)
    : state_(std::make_shared<State>(node, std::move(options))) {
  try {
    state_->open_all();
  } catch (...) {
    state_->close();
    throw;
  }
}

VectorEnv::~VectorEnv() { state_->close(); }

const EnvSpec& VectorEnv::spec() const noexcept { return state_->spec(); }
std::size_t VectorEnv::extras() const noexcept { return state_->extras(); }
std::size_t VectorEnv::size() const noexcept { return state_->size(); }
std::size_t VectorEnv::max_steps() const noexcept { return state_->max_steps(); }

void VectorEnv::reset_async(std::optional<std::uint64_t> seed) { state_->reset(seed); }

EnvBatch VectorEnv::reset(std::optional<std::uint64_t> seed) {
  reset_async(seed);
  return step_wait();
}

void VectorEnv::step_async(const EnvBatch& batch, std::span<const std::byte> actions,
                           std::size_t steps) {
  state_->require_own(batch);
  state_->step(batch.sources, actions, steps);
}
void VectorEnv::step_async(std::span<const EnvBatch::Group> groups,
                           std::span<const std::byte> actions, std::size_t steps) {
  state_->step(groups, actions, steps);
}
void VectorEnv::rollout_async(const EnvBatch& batch, std::size_t steps) {
  state_->require_own(batch);
  state_->roll_out(batch.sources, steps);
}
void VectorEnv::rollout_async(std::span<const EnvBatch::Group> groups, std::size_t steps) {
  state_->roll_out(groups, steps);
}
std::size_t VectorEnv::under_way() const { return state_->under_way(); }

EnvBatch VectorEnv::step_wait() { return state_->wait_for_buffer(); }
EnvBatch VectorEnv::recv(std::size_t min_groups) { return state_->wait_for_groups(min_groups); }

Future<void> VectorEnv::push_policy(Bytes weights, std::uint64_t version) {
  return state_->push_policy(std::move(weights), version);
}

bool VectorEnv::wait_for_workers(std::size_t live, Duration timeout) {
  return state_->wait_for_workers(live, timeout);
}

std::vector<VectorEnv::WorkerState> VectorEnv::workers() const { return state_->worker_states(); }

}  // namespace batchrpc
