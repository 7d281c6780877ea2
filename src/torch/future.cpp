#include "batchrpc/torch/future.hpp"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <memory>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc {

Future<c10::IValue> from_torch(const TorchFuture& future) {
  if (!future) throw InvalidArgument("from_torch: the LibTorch future is null");
  // LibTorch's callbacks must be copyable, but promises are not.
  const auto promise = std::make_shared<Promise<c10::IValue>>();
  Future<c10::IValue> result = promise->get_future();
  future->addCallback([promise](c10::ivalue::Future& done) {
    if (done.hasError()) {
      promise->set_error(done.exception_ptr());
    } else {
      promise->set_value(done.constValue());
    }
  });
  return result;
}

TorchFuture to_torch(Future<c10::IValue> future, c10::TypePtr type,
                     std::vector<c10::Device> devices) {
  auto result = c10::make_intrusive<c10::ivalue::Future>(
      type ? std::move(type) : c10::TypePtr(c10::AnyType::get()), std::move(devices));
  std::move(future).then([result](Result<c10::IValue> value) {
    if (!value) {
      result->setError(value.error());
      return;
    }
    try {
      result->markCompleted(std::move(*value));
    } catch (...) {  // a tensor on a device that was not given
      result->setErrorIfNeeded(std::current_exception());
    }
  });
  return result;
}

}  // namespace batchrpc
