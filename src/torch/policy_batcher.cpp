#include "batchrpc/torch/policy_batcher.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

std::vector<PolicyReply> rows_of(const PolicyOutput& output) {
  std::vector<PolicyReply> replies(static_cast<std::size_t>(output.tensors.front().size(0)),
                                   {{}, output.version});
  for (PolicyReply& reply : replies)
    reply.outputs.reserve(output.tensors.size());
  for (const at::Tensor& tensor : output.tensors) {
    std::vector<at::Tensor> rows = tensor.unbind(0);
    for (std::size_t i = 0; i < rows.size(); ++i)
      replies[i].outputs.push_back(std::move(rows[i]));
  }
  return replies;
}

}  // namespace

Batcher<PolicyReply(at::Tensor)> make_policy_batcher(const std::shared_ptr<Policy>& policy,
                                                     BatchOptions options) {
  if (policy == nullptr) throw InvalidArgument("make_policy_batcher: the policy is null");
  const PolicyInfo& info = policy->info();
  if (options.preferred_sizes.empty()) {
    for (const std::size_t size : info.batch_sizes) {
      if (size <= options.max_size) options.preferred_sizes.push_back(size);
    }
  }
  options.parallelism = info.replicas;
  if (info.device != "cpu") options.device = info.device;
  return Batcher<PolicyReply(at::Tensor)>(
      std::move(options),
      [policy](const at::Tensor& observations) { return rows_of(policy->forward(observations)); },
      {.check = [form = info.observation](const at::Tensor& row) {
        require_row(row, form.type, form.sizes);
      }});
}

}  // namespace batchrpc
