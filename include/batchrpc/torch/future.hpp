#pragma once

#include <ATen/core/ivalue.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// LibTorch's own future. `torch::jit::Module::forward` under `torch::jit::fork` and a c10d `Work`
/// return one.
using TorchFuture = c10::intrusive_ptr<c10::ivalue::Future>;

/// Converts a LibTorch future. Its error stays the original exception. The result completes on the
/// thread that completes `future`, and the callbacks of both run there. Throws InvalidArgument if
/// `future` is null. If LibTorch destroys the future before it has completed, the result fails with
/// BrokenPromise.
[[nodiscard]] BATCHRPC_EXPORT Future<c10::IValue> from_torch(const TorchFuture& future);

/// The same for a value of type T, such as `at::Tensor`. If the value has another type, the future
/// fails with a c10::Error.
template <class T>
requires(!std::is_same_v<T, c10::IValue>)
    [[nodiscard]] Future<T> from_torch(const TorchFuture& future) {
  return from_torch(future).then([](c10::IValue value) { return std::move(value).to<T>(); });
}

/// Converts to a LibTorch future. `type` is the value's TorchScript type; null means any. `devices`
/// must name the devices, other than the CPU, on which the value may have tensors; LibTorch
/// requires that. Consumes `future`.
[[nodiscard]] BATCHRPC_EXPORT TorchFuture to_torch(Future<c10::IValue> future,
                                                   c10::TypePtr type = nullptr,
                                                   std::vector<c10::Device> devices = {});

/// The same for a type that an IValue can hold.
template <class T>
requires(!std::is_same_v<T, c10::IValue>) [[nodiscard]] TorchFuture
    to_torch(Future<T> future, std::vector<c10::Device> devices = {}) {
  if constexpr (std::is_void_v<T>) {
    return to_torch(std::move(future).then([] { return c10::IValue(); }), c10::NoneType::get(),
                    std::move(devices));
  } else {
    return to_torch(std::move(future).then([](T value) { return c10::IValue(std::move(value)); }),
                    c10::getTypePtrCopy<T>(), std::move(devices));
  }
}

}  // namespace batchrpc
