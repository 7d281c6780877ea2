#include "batchrpc/torch/future.hpp"

#include <optional>
#include <stdexcept>
#include <thread>

#include "batchrpc/future/promise.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace future_test {

TorchFuture pending(c10::TypePtr type = c10::AnyType::get()) {
  return c10::make_intrusive<c10::ivalue::Future>(std::move(type));
}

TEST_CASE("a LibTorch future completes ours with its value", "[future]") {
  const TorchFuture torch = pending();
  const Future<c10::IValue> any = from_torch(torch);
  const Future<at::Tensor> tensor = from_torch<at::Tensor>(torch);
  CHECK_FALSE(any.ready());
  CHECK_FALSE(tensor.ready());
  const at::Tensor value = at::rand({3});
  torch->markCompleted(value);
  CHECK(any.get().toTensor().is_same(value));
  CHECK(tensor.get().is_same(value));
  CHECK(from_torch<at::Tensor>(torch).get().is_same(value));  // ready already
}

TEST_CASE("a LibTorch future completes ours from another thread", "[future]") {
  const TorchFuture torch = pending(c10::IntType::get());
  std::thread other([torch] { torch->markCompleted(c10::IValue(7)); });
  CHECK(from_torch<std::int64_t>(torch).get() == 7);
  other.join();
}

TEST_CASE("an error stays the exception that it is", "[future]") {
  const TorchFuture torch = pending();
  const Future<at::Tensor> tensor = from_torch<at::Tensor>(torch);
  torch->setError(std::make_exception_ptr(std::out_of_range("far")));
  CHECK_THROWS_AS(tensor.get(), std::out_of_range);

  Promise<at::Tensor> promise;
  const TorchFuture back = to_torch(promise.get_future());
  promise.set_error(std::out_of_range("far"));
  REQUIRE(back->hasError());
  CHECK_THROWS_AS(std::rethrow_exception(back->exception_ptr()), std::out_of_range);
}

TEST_CASE("a value of another type is an error, as is a future that never completes", "[future]") {
  const TorchFuture torch = pending();
  const Future<at::Tensor> tensor = from_torch<at::Tensor>(torch);
  torch->markCompleted(c10::IValue(7));
  CHECK_THROWS_AS(tensor.get(), c10::Error);

  std::optional<TorchFuture> dropped(pending());
  const Future<c10::IValue> broken = from_torch(*dropped);
  dropped.reset();
  CHECK_THROWS_AS(broken.get(), BrokenPromise);

  CHECK_THROWS_AS(from_torch(TorchFuture()), InvalidArgument);
}

TEST_CASE("our futures complete LibTorch's, with the value's type", "[future]") {
  Promise<at::Tensor> promise;
  const TorchFuture torch = to_torch(promise.get_future());
  CHECK(torch->elementType()->kind() == c10::TypeKind::TensorType);
  CHECK_FALSE(torch->completed());
  int called = 0;
  torch->addCallback([&called](c10::ivalue::Future&) { ++called; });
  const at::Tensor value = at::rand({3});
  promise.set_value(value);
  REQUIRE(torch->completed());
  CHECK(called == 1);
  CHECK(torch->value().toTensor().is_same(value));

  CHECK(to_torch(make_ready_future(std::int64_t{7}))->value().toInt() == 7);
  CHECK(to_torch(make_ready_future(c10::IValue("text")))->value().toStringRef() == "text");
  CHECK(to_torch(make_ready_future())->value().isNone());
}

TEST_CASE("a value goes there and back", "[future]") {
  const std::vector<std::int64_t> value{1, 2, 3};
  CHECK(from_torch<std::vector<std::int64_t>>(to_torch(make_ready_future(value))).get() == value);
}

}  // namespace future_test
}  // namespace batchrpc
