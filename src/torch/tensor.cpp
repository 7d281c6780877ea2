#include "batchrpc/torch/tensor.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>

#include "batchrpc/base/error.hpp"
#include "batchrpc/wire/envelope.hpp"
#include "torch/sparse.hpp"
#include "torch/tensor_types.hpp"

namespace batchrpc {
namespace detail {
namespace {

// The cost of a small tensor to its receiver besides its elements, in words. It is charged to the
// message.
constexpr std::uint64_t kTensorWords = 32;

std::span<const std::int64_t> sizes_of(const at::Tensor& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  return {sizes.data(), sizes.size()};
}

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw InvalidArgument("a tensor cannot be sent: " + what + "; " + remedy);
}

// Whether a dense tensor of that shape could exist: see bytes_of().
bool is_countable(const at::Tensor& tensor) {
  auto bytes = static_cast<std::int64_t>(tensor.element_size());
  return std::ranges::none_of(tensor.sizes(), [&](std::int64_t size) {
    return __builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes);
  });
}

void require_sendable(const at::Tensor& tensor) {
  if (tensor.is_quantized()) refuse("it is quantized", "send tensor.dequantize()");
  if (tensor.layout() != c10::kStrided && !is_sendable_sparse(tensor)) {
    refuse("its layout is not strided, COO, or CSR of a matrix of numbers",
           "send tensor.to_dense() or tensor.to_sparse()");
  }
  if (tensor.layout() != c10::kStrided && !is_countable(tensor)) {
    refuse("as a dense tensor it would have 2^63 bytes or more", "send its parts");
  }
  if (tensor.is_nested()) refuse("it is nested", "send the tensors of tensor.unbind()");
  if (tensor.is_meta()) refuse("it is a meta tensor, without data", "send its sizes");
  if (tensor_type_number(tensor.scalar_type()) == 0) {
    refuse(std::string("its type, ") + c10::toString(tensor.scalar_type()) +
               ", is not supported on the wire",
           "convert it with tensor.to(type)");
  }
  if (static_cast<std::size_t>(tensor.dim()) > kMaxTensorDimensions) {
    refuse("it has " + std::to_string(tensor.dim()) + " dimensions, the limit is " +
               std::to_string(kMaxTensorDimensions),
           "send tensor.flatten()");
  }
}

// Memory that is being sent, kept alive until it has been written to the socket.
struct SentStorage {
  explicit SentStorage(const at::Tensor& tensor)
      : storage(tensor.storage())
#ifndef NDEBUG
        ,
        version(tensor.unsafeGetTensorImpl()->version_counter()),
        version_before(current_version())
#endif
  {
  }
  SentStorage(const SentStorage&) = delete;
  SentStorage& operator=(const SentStorage&) = delete;

  const c10::Storage storage;

#ifndef NDEBUG
  ~SentStorage() {
    const std::uint32_t now = current_version();
    if (now == version_before) return;
    TORCH_WARN(
        "batchrpc: a tensor, or another view of its storage, was written to while it was being "
        "sent (version ",
        version_before, " became ", now,
        "). The receiver may get neither the old nor the new values. Write to it after the call's "
        "future has completed, or send tensor.clone()");
  }
  std::uint32_t current_version() const {
    return version.enabled() ? version.current_version() : 0;
  }

  c10::VariableVersion version;
  std::uint32_t version_before;
#endif
};

Bytes bytes_to_send(const at::Tensor& tensor) {
  const bool is_plain = tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() &&
                        !tensor.is_neg() && !tensor._is_zerotensor();
  at::Tensor copy;
  if (!is_plain) {
    const c10::AutoGradMode no_grad(false);
    copy = tensor.detach().cpu().resolve_conj().resolve_neg();
    copy = copy._is_zerotensor() ? at::zeros_like(copy) : copy;
    copy = copy.contiguous();
  }
  const at::Tensor& dense = is_plain ? tensor : copy;
  if (!dense.has_storage()) refuse("it has no storage of its own", "send a plain tensor");
  const auto* const data = static_cast<const std::byte*>(dense.data_ptr());
  if (data == nullptr) refuse("it has no memory", "fill it first");
  const std::span<const std::byte> bytes(data, dense.nbytes());
  if (bytes.size() <= wire::kInlinePayloadBytes) return Bytes::copy(bytes);
  return {std::make_shared<const SentStorage>(dense), bytes};
}

void release_received(void* held) { delete static_cast<Bytes*>(held); }

at::Tensor view_of(const Bytes& payload, at::IntArrayRef sizes, c10::TensorOptions options) {
  return at::for_blob(payload.mutable_data(), sizes)
      .context(new Bytes(payload), &release_received)
      .target_device(c10::Device(c10::kCPU))
      .options(options)
      .make_tensor();
}

}  // namespace

void warn_of_graph(const at::Tensor& tensor) {
  if (!tensor.requires_grad() || tensor.is_leaf()) return;
  TORCH_WARN_ONCE(
      "batchrpc: a tensor that requires a gradient and is no leaf, ", describe_tensor(tensor),
      ", is sent without its graph. It arrives as plain data, and no gradient flows back through "
      "the call. Send tensor.detach() to say that this is intended. (This warning appears once.)");
}

const Bytes* received_bytes(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  if (memory.get_deleter() != &release_received) return nullptr;
  return static_cast<const Bytes*>(memory.get_context());
}

std::string describe_type(at::ScalarType type) {
  const std::uint8_t number = tensor_type_number(type);
  return number != 0 ? std::string(kTensorTypes[number].name) : std::string(c10::toString(type));
}

std::string describe_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::string text = tensor.layout() == c10::kStrided ? "" : "sparse ";
  text += describe_type(tensor.scalar_type());
  if (!tensor.is_nested()) text.append(1, ' ').append(describe_shape(sizes_of(tensor)));
  if (!tensor.is_cpu()) text += " on " + tensor.device().str();
  return text;
}

}  // namespace detail

detail::TensorHeader Codec<at::Tensor>::encode(const at::Tensor& tensor, Encoder& encoder) {
  detail::TensorHeader header;
  if (!tensor.defined()) return header;
  detail::require_sendable(tensor);
  header.type = detail::tensor_type_number(tensor.scalar_type());
  header.requires_grad = tensor.requires_grad() && tensor.is_leaf();
  detail::warn_of_graph(tensor);
  header.sizes = detail::sizes_of(tensor);
  if (tensor.layout() != c10::kStrided) {
    detail::encode_sparse(tensor, header, encoder);
    return header;
  }
  if (tensor.numel() != 0) header.payload = encoder.add_payload(detail::bytes_to_send(tensor));
  return header;
}

at::Tensor Codec<at::Tensor>::decode(detail::TensorHeader&& header, Decoder& decoder) {
  if (header.type == 0) return {};
  const std::size_t bytes = detail::bytes_of(header);
  const detail::TensorType& type = detail::kTensorTypes[header.type];
  if (type.scalar == c10::ScalarType::Undefined) {
    Decoder::fail("a tensor of type " + std::string(type.name) +
                  ", which this program's LibTorch does not have");
  }
  const bool can_require_grad = c10::isFloatingType(type.scalar) || c10::isComplexType(type.scalar);
  if (header.requires_grad && !can_require_grad) {
    Decoder::fail("a tensor " + describe_header(header) +
                  " that requires a gradient, which only floating point and complex ones do");
  }
  decoder.charge(detail::kTensorWords);

  // The thread that drives the loop decodes, perhaps for another thread, so its modes must not
  // matter.
  const c10::InferenceMode no_inference(false);
  const at::IntArrayRef sizes(header.sizes.data(), header.sizes.size());
  const auto options = c10::TensorOptions().dtype(type.scalar).device(c10::kCPU);
  at::Tensor tensor;
  if (header.layout != detail::TensorLayout::dense) {
    tensor = detail::decode_sparse(header, decoder);
  } else if (bytes == 0) {
    tensor = at::empty(sizes, options);
  } else {
    Bytes payload = detail::payload_of(header, decoder);
    if (reinterpret_cast<std::uintptr_t>(payload.data()) % type.bytes != 0) {
      decoder.charge_payload(bytes);  // not received from a peer, whose payloads are aligned
      payload = Bytes::copy(payload.span());
    }
    tensor = detail::view_of(payload, sizes, options);
  }
  if (header.requires_grad) tensor.set_requires_grad(true);
  return tensor;
}

}  // namespace batchrpc
