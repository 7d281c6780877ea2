#include "batchrpc/torch/env.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/torch/tensor.hpp"

namespace batchrpc {
namespace {

// The sizes of a tensor of the batch: its rows, then `row`.
std::vector<std::int64_t> sizes_of(const EnvBatch& batch,
                                   const std::vector<std::int64_t>& row = {}) {
  std::vector<std::int64_t> sizes;
  if (batch.steps == 1) {
    sizes = {static_cast<std::int64_t>(batch.rows())};
  } else {
    sizes = {static_cast<std::int64_t>(batch.groups), static_cast<std::int64_t>(batch.steps),
             static_cast<std::int64_t>(batch.envs)};
  }
  sizes.insert(sizes.end(), row.begin(), row.end());
  return sizes;
}

at::Tensor share(const Bytes& bytes, const std::vector<std::int64_t>& sizes, ElementType type) {
  const at::ScalarType of = scalar_type_of(type);
  if (bytes.empty()) return at::empty(sizes, of);
  return at::from_blob(
      bytes.mutable_data(), sizes, [owner = bytes.owner()](void* /*data*/) {}, of);
}

at::Tensor flags_of(const EnvBatch& batch, const std::vector<std::uint8_t>& flags) {
  at::Tensor tensor = at::empty(sizes_of(batch), at::kBool);
  if (!flags.empty()) std::memcpy(tensor.data_ptr(), flags.data(), flags.size());
  return tensor;
}

at::Tensor floats_of(const std::vector<float>& values, const std::vector<std::int64_t>& sizes) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  if (!values.empty()) std::memcpy(tensor.data_ptr(), values.data(), values.size() * sizeof(float));
  return tensor;
}

const EnvSpec& spec_of(const EnvBatch& batch) {
  if (batch.spec == nullptr) throw InvalidArgument("the batch was not made by a VectorEnv");
  return *batch.spec;
}

// Whether `actions` have the sizes [G, steps, k, …] or, for one step, [G, k, …] or [G · k, …].
bool has_rows(const at::Tensor& actions, const EnvBatch& batch, std::size_t steps) {
  const std::vector<std::int64_t>& shape = spec_of(batch).action.shape;
  const auto size = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  const auto has = [&](std::vector<std::int64_t> sizes) {
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return actions.sizes() == at::IntArrayRef(sizes);
  };
  if (has({size(batch.groups), size(steps), size(batch.envs)})) return true;
  return steps == 1 &&
         (has({size(batch.groups), size(batch.envs)}) || has({size(batch.groups * batch.envs)}));
}

void require_rollout(const EnvBatch& batch, const char* what) {
  if (!batch.versions.empty()) return;
  throw InvalidArgument(std::string(what) +
                        ": the batch does not come from a rollout (rollout_async)");
}

}  // namespace

at::ScalarType scalar_type_of(ElementType type) {
  switch (type) {
    case ElementType::boolean:
      return at::kBool;
    case ElementType::uint8:
      return at::kByte;
    case ElementType::int32:
      return at::kInt;
    case ElementType::int64:
      return at::kLong;
    case ElementType::float32:
      return at::kFloat;
    case ElementType::float64:
      return at::kDouble;
  }
  throw InvalidArgument("LibTorch has no tensors of " + to_string(type));
}

at::Tensor observations_of(const EnvBatch& batch) {
  const ArraySpec& spec = spec_of(batch).observation;
  return share(batch.observations, sizes_of(batch, spec.shape), spec.type);
}

at::Tensor final_observations_of(const EnvBatch& batch) {
  const ArraySpec& spec = spec_of(batch).observation;
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(batch.final_rows.size())};
  sizes.insert(sizes.end(), spec.shape.begin(), spec.shape.end());
  return share(batch.final_observations, sizes, spec.type);
}

at::Tensor actions_of(const EnvBatch& batch) {
  require_rollout(batch, "actions_of");
  const ArraySpec& spec = spec_of(batch).action;
  return share(batch.actions, sizes_of(batch, spec.shape), spec.type);
}

at::Tensor rewards_of(const EnvBatch& batch) { return floats_of(batch.rewards, sizes_of(batch)); }
at::Tensor terminated_of(const EnvBatch& batch) { return flags_of(batch, batch.terminated); }
at::Tensor truncated_of(const EnvBatch& batch) { return flags_of(batch, batch.truncated); }
at::Tensor started_of(const EnvBatch& batch) { return flags_of(batch, batch.started); }
at::Tensor valid_of(const EnvBatch& batch) { return flags_of(batch, batch.valid); }

at::Tensor extras_of(const EnvBatch& batch) {
  require_rollout(batch, "extras_of");
  const std::size_t rows = batch.rows();
  return floats_of(batch.extras,
                   sizes_of(batch, {static_cast<std::int64_t>(batch.extras.size() / rows)}));
}

void step_async(VectorEnv& envs, const EnvBatch& batch, const at::Tensor& actions,
                std::size_t steps) {
  const EnvSpec& spec = envs.spec();
  const at::ScalarType type = scalar_type_of(spec.action.type);
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument("step_async: the actions are " + detail::describe_tensor(actions) +
                          ", but " + what + ": " + to_string(spec.action) + " each");
  };
  if (!actions.defined()) refuse("a defined tensor is needed");
  const bool integers = spec.actions > 0 && c10::isIntegralType(actions.scalar_type(), false);
  if (actions.scalar_type() != type && !integers) refuse("another type is needed");
  if (!has_rows(actions, batch, steps)) {
    refuse(steps == 1 ? "one row is needed for each of " +
                            std::to_string(batch.groups * batch.envs) + " environments"
                      : "[" + std::to_string(batch.groups) + ", " + std::to_string(steps) + ", " +
                            std::to_string(batch.envs) +
                            "] rows are needed (groups, steps, environments per group)");
  }
  const at::Tensor given = actions.detach().to(at::kCPU);
  const at::Tensor dense = given.to(type).contiguous();
  // A conversion would turn 2^32 + 1 into 1, which may be a valid action.
  if (integers && !at::equal(dense.to(at::kLong), given.to(at::kLong))) {
    refuse("a value does not fit the action's type");
  }
  envs.step_async(
      batch, std::as_bytes(std::span(static_cast<const char*>(dense.data_ptr()), dense.nbytes())),
      steps);
}

}  // namespace batchrpc
