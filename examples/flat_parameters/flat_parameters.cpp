#include "flat_parameters/flat_parameters.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

namespace {

std::vector<at::Tensor> float_buffers(const torch::nn::Module& module) {
  std::vector<at::Tensor> buffers = module.buffers();
  std::erase_if(buffers, [](const at::Tensor& each) { return each.scalar_type() != at::kFloat; });
  return buffers;
}

std::vector<at::Tensor> flat_tensors(const torch::nn::Module& module, bool with_buffers) {
  std::vector<at::Tensor> tensors = module.parameters();
  if (with_buffers) {
    const std::vector<at::Tensor> buffers = float_buffers(module);
    tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  }
  return tensors;
}

}  // namespace

FlatParameters::FlatParameters(torch::nn::Module& module, bool with_buffers) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters = module.parameters();
  if (parameters.empty()) throw std::invalid_argument("the module has no parameters");
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.scalar_type() != at::kFloat || parameter.device() != parameters[0].device()) {
      throw std::invalid_argument("all parameters must be float32 and on one device");
    }
    elements += parameter.numel();
  }
  const auto options = parameters[0].options().requires_grad(false);
  gradients_ = at::zeros({elements}, options);
  const auto buffers = with_buffers ? float_buffers(module) : std::vector<at::Tensor>();
  for (const at::Tensor& buffer : buffers)
    elements += buffer.numel();
  values_ = at::empty({elements}, options);
  std::int64_t begin = 0;
  for (at::Tensor& parameter : parameters) {
    const Shard place{begin, begin + parameter.numel()};
    at::Tensor value = place.of(values_).view(parameter.sizes());
    value.copy_(parameter);
    parameter.set_data(value);
    parameter.mutable_grad() = place.of(gradients_).view(parameter.sizes());
    begin = place.end;
  }
  for (at::Tensor buffer : buffers) {
    const Shard place{begin, begin + buffer.numel()};
    at::Tensor value = place.of(values_).view(buffer.sizes());
    value.copy_(buffer);
    buffer.set_data(value);
    begin = place.end;
  }
}

std::int64_t flat_elements(const torch::nn::Module& module, bool with_buffers) {
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : flat_tensors(module, with_buffers))
    elements += tensor.numel();
  return elements;
}

at::Tensor flat_values(const torch::nn::Module& module, bool with_buffers) {
  return flat_values(module, with_buffers, {0, flat_elements(module, with_buffers)});
}

at::Tensor flat_values(const torch::nn::Module& module, bool with_buffers, const Shard& part) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> pieces;
  std::int64_t place = 0;
  for (const at::Tensor& tensor : flat_tensors(module, with_buffers)) {
    const std::int64_t begin = std::max(part.begin - place, std::int64_t{0});
    const std::int64_t end = std::min(part.end - place, tensor.numel());
    if (begin < end) pieces.push_back(Shard{begin, end}.of(tensor.detach().flatten()));
    place += tensor.numel();
  }
  return at::cat(pieces);
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
