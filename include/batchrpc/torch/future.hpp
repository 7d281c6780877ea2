#pragma once

#include <ATen/core/ivalue.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// LibTorch's own future, as `torch::jit::Module::forward` under `torch::jit::fork` or a c10d
/// `Work` gives it.
using TorchFuture = c10::intrusive_ptr<c10::ivalue::Future>;

/// A future of what `future` will hold. Its error stays the exception that it is. It completes on
/// the thread that completes `future`; so do the callbacks of either. Throws InvalidArgument when
/// `future` is null. A LibTorch future that is destroyed before it has completed ends this one with
/// BrokenPromise.
[[nodiscard]] BATCHRPC_EXPORT Future<c10::IValue> from_torch(const TorchFuture& future);

/// The same for a value of type T, such as `at::Tensor`; another type of value becomes a c10::Error
/// in the future.
template <class T>
requires(!std::is_same_v<T, c10::IValue>)
    [[nodiscard]] Future<T> from_torch(const TorchFuture& future) {
  return from_torch(future).then([](c10::IValue value) { return std::move(value).to<T>(); });
}

/// A LibTorch future of what `future` will hold, for code that takes those. `type` is the value's
/// TorchScript type; null: any. It names `devices` when the value may have tensors on them:
/// LibTorch insists on that, and not on the CPU. Consumes `future`.
[[nodiscard]] BATCHRPC_EXPORT TorchFuture to_torch(Future<c10::IValue> future,
                                                   c10::TypePtr type = nullptr,
                                                   std::vector<c10::Device> devices = {});

/// The same for a value that an IValue can hold.
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
