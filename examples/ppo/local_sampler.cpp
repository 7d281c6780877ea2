#include "ppo/local_sampler.hpp"

#include <batchrpc/base/error.hpp>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "ppo/random.hpp"

namespace batchrpc_examples::ppo {

namespace rpc = batchrpc;

namespace {

// The bytes of one row of a dense tensor [rows, ...].
std::span<std::byte> row_of(const at::Tensor& tensor, std::int64_t row) {
  const auto size = static_cast<std::size_t>(tensor.stride(0) * tensor.element_size());
  return {static_cast<std::byte*>(tensor.data_ptr()) + static_cast<std::size_t>(row) * size, size};
}

void append(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Reads data that append() wrote.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) throw std::invalid_argument("a sampler's state is incomplete");
    at_ += size;
    return std::string_view(bytes_).substr(at_ - size, size);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

LocalSampler::LocalSampler(const rpc::EnvFactory& make, std::int64_t envs, std::uint64_t seed,
                           Decide decide)
    : seed_(seed), decide_(std::move(decide)) {
  if (envs < 1) throw rpc::InvalidArgument("a sampler needs at least one environment");
  for (std::int64_t i = 0; i < envs; ++i) {
    envs_.push_back({.env = make(), .actions = {}});
    if (envs_.back().env->spec() != spec()) {
      throw rpc::InvalidArgument("the environments of a sampler differ: " + to_string(spec()) +
                                 " and " + to_string(envs_.back().env->spec()));
    }
  }
  require_usable(spec());
  require_int64_action(spec());
  next_ = blank_observations(spec(), envs);
  for (std::size_t i = 0; i < envs_.size(); ++i)
    envs_[i].env->reset(seed_of(i), next_observation(i));
}

std::uint64_t LocalSampler::seed_of(std::size_t index) const {
  return mix(mix(seed_, index), envs_[index].episode);
}

std::span<std::byte> LocalSampler::next_observation(std::size_t index) {
  return row_of(next_, static_cast<std::int64_t>(index));
}

std::vector<Sample> LocalSampler::sample(std::int64_t steps) {
  const auto envs = static_cast<std::int64_t>(envs_.size());
  Sample sample = blank_sample(steps, next_);
  sample.valid.fill_(true);
  sample.begun_anew = std::exchange(begun_anew_, false);
  Finals finals;
  auto* rewards = sample.rewards.data_ptr<float>();
  auto* terminated = sample.terminated.data_ptr<bool>();
  auto* truncated = sample.truncated.data_ptr<bool>();
  for (std::int64_t t = 0; t < steps; ++t) {
    sample.observations[t].copy_(next_);
    const Decisions decisions = decide_(sample.observations[t]);
    sample.actions[t].copy_(decisions.actions);
    sample.log_probs[t].copy_(decisions.log_probs);
    sample.values[t].copy_(decisions.values);
    sample.versions[t].fill_(decisions.version);
    const auto* actions = sample.actions[t].data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      Place& place = envs_[i];
      const std::span<std::byte> observation = next_observation(i);
      const auto action = std::as_bytes(std::span(actions + i, 1));
      const rpc::EnvStep step = place.env->step(action, observation);
      const std::int64_t row = t * envs + static_cast<std::int64_t>(i);
      rewards[row] = step.reward;
      terminated[row] = step.terminated;
      truncated[row] = step.truncated;
      place.actions.append(reinterpret_cast<const char*>(action.data()), action.size());
      if (!step.ended()) continue;
      if (!step.terminated) finals.add(row, next_[static_cast<std::int64_t>(i)].clone());
      ++place.episode;
      place.actions.clear();
      place.env->reset(seed_of(i), observation);
    }
  }
  sample.next_observations = next_.clone();
  finals.move_to(sample);
  return {sample};
}

std::string LocalSampler::state() const {
  std::string bytes;
  append(bytes, envs_.size());
  for (const Place& place : envs_) {
    append(bytes, place.episode);
    append(bytes, place.actions.size());
    bytes += place.actions;
  }
  return bytes;
}

void LocalSampler::restore(const std::string& state, std::int64_t /*updates*/) {
  if (state.empty()) return;  // workers had other episodes than these new ones
  begun_anew_ = false;
  Reader reader(state);
  if (reader.number() != envs_.size()) {
    throw std::invalid_argument("a sampler's state belongs to a different number of environments");
  }
  for (std::size_t i = 0; i < envs_.size(); ++i) {
    Place& place = envs_[i];
    place.episode = reader.number();
    place.actions = reader.take(reader.number());
    const auto actions = std::as_bytes(std::span(place.actions));
    constexpr std::size_t kAction = sizeof(std::int64_t);
    if (actions.size() % kAction != 0)
      throw std::invalid_argument("a sampler's state contains half an action");
    place.env->reset(seed_of(i), next_observation(i));
    for (std::size_t at = 0; at < actions.size(); at += kAction)
      (void)place.env->step(actions.subspan(at, kAction), next_observation(i));
  }
  if (!reader.at_end()) throw std::invalid_argument("a sampler's state is too long");
}

}  // namespace batchrpc_examples::ppo
