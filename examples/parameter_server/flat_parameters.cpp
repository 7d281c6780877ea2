#include "parameter_server/flat_parameters.hpp"

#include <stdexcept>
#include <string>

namespace batchrpc_examples {

FlatParameters::FlatParameters(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters = module.parameters();
  if (parameters.empty()) throw std::invalid_argument("the module has no parameters");
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.scalar_type() != at::kFloat || parameter.device() != parameters[0].device()) {
      throw std::invalid_argument("all parameters must be float32 on one device");
    }
    elements += parameter.numel();
  }
  values_ = at::empty({elements}, parameters[0].options().requires_grad(false));
  gradients_ = at::zeros_like(values_);
  std::int64_t begin = 0;
  for (at::Tensor& parameter : parameters) {
    const Shard place{begin, begin + parameter.numel()};
    at::Tensor value = place.of(values_).view(parameter.sizes());
    value.copy_(parameter);
    parameter.set_data(value);
    parameter.mutable_grad() = place.of(gradients_).view(parameter.sizes());
    begin = place.end;
  }
}

at::Tensor flat_values(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : module.parameters())
    parts.push_back(parameter.detach().flatten());
  return at::cat(parts);
}

std::vector<Shard> shards(std::int64_t elements, std::int64_t parts) {
  if (parts < 1 || parts > elements) {
    throw std::invalid_argument(std::to_string(elements) + " elements cannot be cut into " +
                                std::to_string(parts) + " parts");
  }
  std::vector<Shard> result;
  std::int64_t begin = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t size = elements / parts + (part < elements % parts ? 1 : 0);
    result.push_back({begin, begin + size});
    begin += size;
  }
  return result;
}

}  // namespace batchrpc_examples
