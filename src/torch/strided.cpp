#include "batchrpc/torch/strided.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include <string>

#include "batchrpc/base/error.hpp"
#include "torch/tensor_types.hpp"

namespace batchrpc {
namespace {

// The number of elements of the storage from the view's first element to its last. Negative: more
// than can be counted.
std::int64_t reach_of(at::IntArrayRef sizes, at::IntArrayRef strides) {
  std::int64_t reach = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t step = 0;
    if (sizes[i] == 0) return 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(reach, step, &reach)) {
      return -1;
    }
  }
  return reach;
}

}  // namespace

Codec<Strided>::Wire Codec<Strided>::encode(const Strided& value, Encoder& /*encoder*/) {
  if (!value.tensor.defined()) return {};
  if (value.tensor.layout() != c10::kStrided || value.tensor.is_nested()) {
    throw InvalidArgument(
        "a Strided cannot be sent: its tensor is sparse or nested; send the tensor itself");
  }
  detail::warn_of_graph(value.tensor);
  const c10::AutoGradMode no_grad(false);
  const at::Tensor sent = value.tensor.detach().resolve_conj().resolve_neg();
  const std::int64_t reach = reach_of(sent.sizes(), sent.strides());
  return {.requires_grad = value.tensor.requires_grad() && value.tensor.is_leaf(),
          .elements = sent.as_strided({reach}, {1}),
          .sizes = sent.sizes().vec(),
          .strides = sent.strides().vec()};
}

Strided Codec<Strided>::decode(Wire&& wire, Decoder& /*decoder*/) {
  if (!wire.elements.defined()) return {};
  const auto fail = [&](const std::string& what) {
    Decoder::fail("a strided tensor of " + std::to_string(wire.sizes.size()) + " dimensions " +
                  what);
  };
  const at::Tensor& elements = wire.elements;
  if (elements.layout() != c10::kStrided || elements.dim() != 1) fail("has no row of elements");
  if (wire.strides.size() != wire.sizes.size())
    fail("has " + std::to_string(wire.strides.size()) + " strides");
  if (std::ranges::any_of(wire.strides, [](std::int64_t stride) { return stride < 0; }))
    fail("has a negative stride");
  // Throws if no such tensor can exist.
  static_cast<void>(detail::bytes_of(
      {.type = detail::tensor_type_number(elements.scalar_type()), .sizes = wire.sizes}));
  const std::int64_t reach = reach_of(wire.sizes, wire.strides);
  if (reach < 0 || reach > elements.numel()) fail("reaches beyond its elements");
  if (wire.requires_grad && !elements.is_floating_point() && !elements.is_complex()) {
    fail("requires a gradient, which only floating point and complex ones do");
  }
  const c10::InferenceMode no_inference(false);
  at::Tensor tensor;
  {
    const at::AutoDispatchBelowADInplaceOrView no_view;  // of autograd: it may be written
    tensor = elements.as_strided(wire.sizes, wire.strides);
  }
  if (wire.requires_grad) tensor.set_requires_grad(true);
  return {std::move(tensor)};
}

}  // namespace batchrpc
