#include "batchrpc/torch/call_into.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <span>
#include <string>

#include "batchrpc/base/error.hpp"
#include "torch/tensor_types.hpp"

namespace batchrpc::detail {
namespace {

std::span<std::byte> memory_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// A large reply's bytes are already in `out`; a small one's are copied there.
void take(const at::Tensor& out, Reply& reply) {
  Decoder decoder(reply.segment, reply.payloads);
  const auto [header] = decode_struct<TensorHeader>(decoder, wire::kBodyPointer - 1);
  const std::size_t bytes = bytes_of(header);
  const at::IntArrayRef sizes(header.sizes.data(), header.sizes.size());
  if (header.layout != TensorLayout::dense ||
      header.type != tensor_type_number(out.scalar_type()) || sizes != out.sizes()) {
    throw InvalidArgument("call_into: the result is " + describe_header(header) +
                              ", but the receiving tensor is " + describe_tensor(out),
                          /*may_have_run=*/true);
  }
  if (bytes == 0) return;
  const Bytes& payload = payload_of(header, decoder);
  const std::span<std::byte> memory = memory_of(out);
  if (payload.data() != memory.data()) std::memcpy(memory.data(), payload.data(), bytes);
  if (!out.is_inference()) out.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

void require_receiving(const at::Tensor& out) {
  const auto refuse = [&](const char* what) {
    throw InvalidArgument("call_into: the receiving tensor is " + describe_tensor(out) + what);
  };
  if (!out.defined()) refuse("");
  if (!out.is_cpu()) refuse("; pass a CPU tensor, and copy from it");
  if (out.layout() != c10::kStrided || out.is_quantized() || out.is_nested()) {
    refuse(", and sparse, quantized or nested; pass a dense one");
  }
  if (tensor_type_number(out.scalar_type()) == 0) refuse(", of a type that cannot be sent");
  if (!out.is_contiguous() || out.is_conj() || out.is_neg() || out._is_zerotensor()) {
    refuse(", and not contiguous; pass a new tensor, or its contiguous()");
  }
}

PayloadTarget into_tensor(at::Tensor out) {
  return [out = std::move(out)](std::size_t index, std::size_t size) -> std::span<std::byte> {
    const std::span<std::byte> memory = memory_of(out);
    if (index != 0 || size != memory.size()) return {};
    return memory;
  };
}

Pending<void> receive_into(at::Tensor out) {
  return wait_for_reply<void>([out = std::move(out)](Reply& reply) { take(out, reply); });
}

}  // namespace batchrpc::detail
