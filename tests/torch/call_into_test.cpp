#include "batchrpc/torch/call_into.hpp"

#include <atomic>
#include <chrono>

#include "batchrpc/torch.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

namespace torch_calls {

at::Tensor filled(double value, std::int64_t n) { return at::full({n}, value); }
at::Tensor doubled(const at::Tensor& tensor) { return tensor * 2; }
batchrpc::Future<at::Tensor> filled_later(double value, std::int64_t n) {
  return batchrpc::make_ready_future(filled(value, n));
}
std::vector<at::Tensor> all_doubled(std::vector<at::Tensor> tensors) {
  for (at::Tensor& tensor : tensors)
    tensor.mul_(2);
  return tensors;
}

}  // namespace torch_calls

namespace batchrpc {
namespace call_into_test {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using test::may_have_run;
using Pair = test::NodePair;
using test::outcome;
using torch_test::identical;
using torch_test::message_of;

constexpr std::int64_t kSmall = 100;
constexpr std::int64_t kLarge = 1'000'000;  // 4 MB: many chunks

TEST_CASE("tensors of any size travel between nodes, both ways", "[calls]") {
  Pair pair;
  pair.b.expose<&torch_calls::doubled>();
  pair.b.expose<&torch_calls::all_doubled>();
  pair.a.expose<&torch_calls::doubled>();
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{1}, kSmall, std::int64_t{4096}, std::int64_t{4097}, kLarge}) {
    const at::Tensor tensor = at::rand({n});
    CHECK(identical(pair.a.call<&torch_calls::doubled>("b", tensor).get(), tensor * 2));
    CHECK(identical(pair.b.call<&torch_calls::doubled>("a", tensor).get(), tensor * 2));
    CHECK(identical(pair.a.call<&torch_calls::doubled>("b", tensor.view({1, n}).t()).get(),
                    tensor.view({n, 1}) * 2));
  }
  const std::vector<at::Tensor> list{at::rand({3}), at::Tensor(at::rand({kLarge})), at::rand({0})};
  const auto doubled = pair.a.call<&torch_calls::all_doubled>("b", list).get();
  for (std::size_t i = 0; i < list.size(); ++i)
    CHECK(identical(doubled[i], list[i] * 2));
}

TEST_CASE("a call to oneself gives a tensor of its own", "[calls]") {
  Pair pair;
  pair.a.expose<&torch_calls::all_doubled>();
  const at::Tensor tensor = at::ones({kLarge});
  const auto came = pair.a.call<&torch_calls::all_doubled>("a", std::vector{tensor}).get();
  CHECK(at::equal(came[0], tensor * 2));
  CHECK(at::all(tensor == 1).item<bool>());
}

TEST_CASE("what a tensor is refused for is in the call's future", "[calls]") {
  Pair pair;
  pair.b.expose<&torch_calls::doubled>();
  const auto csc = outcome(pair.a.call<&torch_calls::doubled>("b", at::eye(3).to_sparse_csc()));
  CHECK(csc.code() == ErrorCode::invalid_argument);
  CHECK_FALSE(may_have_run(csc.error()));
  pair.b.expose("csc", [] { return at::eye(3).to_sparse_csc(); });
  CHECK_THAT(message_of([&] { pair.a.call<at::Tensor()>("b", "csc").get(); }),
             Contains("to_sparse()"));
  CHECK(pair.a.call<&torch_calls::doubled>("b", at::ones({2})).get().defined());
}

TEST_CASE("call_into receives small and large results into the caller's tensor", "[call_into]") {
  Pair pair;
  pair.b.expose<&torch_calls::filled>();
  pair.b.expose<&torch_calls::filled_later>();
  for (const std::int64_t n : {std::int64_t{0}, kSmall, kLarge}) {
    at::Tensor out = at::empty({n});
    const void* const memory = out.data_ptr();
    call_into<&torch_calls::filled>(pair.a.peer("b"), out, 1.5, n).get();
    CHECK(identical(out, at::full({n}, 1.5)));
    call_into<&torch_calls::filled_later>(pair.a.peer("b"), out, 2.5, n).get();
    CHECK(identical(out, at::full({n}, 2.5)));
    call_into<at::Tensor(double, std::int64_t)>(pair.a.peer("b"), out, "torch_calls::filled", 3.5,
                                                n)
        .get();
    CHECK(identical(out, at::full({n}, 3.5)));
    CHECK(out.data_ptr() == memory);
  }
}

TEST_CASE("a large result is received straight into the tensor's memory", "[call_into]") {
  at::Tensor out = at::zeros({kLarge});
  detail::PayloadTarget target = detail::into_tensor(out);
  const std::span<std::byte> memory = target(0, out.nbytes());
  CHECK(memory.data() == out.data_ptr());
  CHECK(memory.size() == out.nbytes());
  CHECK(target(1, out.nbytes()).empty());
  CHECK(target(0, out.nbytes() - 1).empty());

  // The bytes are there already: nothing is copied, which shows in a payload that is the memory.
  const auto message = torch_test::send(at::zeros({kLarge}));
  out.fill_(7);
  const Bytes in_place(nullptr, memory);
  detail::Reply reply{.error = nullptr, .segment = {}, .payloads = {&in_place, 1}};
  std::vector<Word> words(wire::kBodyPointer - 1);
  Encoder encoder(wire::kBodyPointer);
  encode_struct(encoder, wire::kBodyPointer - 1, at::Tensor(at::zeros({kLarge})));
  reply.segment = encoder.words();
  const auto version = out._version();
  auto pending = detail::receive_into(out);
  pending.handler(reply);
  pending.future.get();
  CHECK(at::all(out == 7).item<bool>());
  CHECK(out._version() == version + 1);
}

TEST_CASE("call_into takes views that are dense, and parameters", "[call_into]") {
  Pair pair;
  pair.b.expose<&torch_calls::filled>();
  const at::Tensor buffer = at::zeros({3, kLarge});
  call_into<&torch_calls::filled>(pair.a.peer("b"), buffer.select(0, 1), 1.0, kLarge).get();
  CHECK(at::equal(buffer.sum(1), at::tensor({0.F, float(kLarge), 0.F})));

  const at::Tensor parameter = at::zeros({kSmall}).set_requires_grad(true);
  call_into<&torch_calls::filled>(pair.a.peer("b"), parameter, 1.0, kSmall).get();
  CHECK(parameter.is_leaf());
  CHECK(parameter.sum().item<float>() == kSmall);
}

TEST_CASE("a result of another shape or type is an error that names both", "[call_into]") {
  Pair pair;
  pair.b.expose<&torch_calls::filled>();
  pair.b.expose<&torch_calls::doubled>();
  for (const std::int64_t n : {kSmall, kLarge}) {
    const auto shape =
        outcome(call_into<&torch_calls::filled>(pair.a.peer("b"), at::empty({n + 1}), 1, n));
    CHECK(shape.code() == ErrorCode::invalid_argument);
    CHECK(may_have_run(shape.error()));
    CHECK_THAT(shape.message(), Contains("float32 [" + std::to_string(n) + "]") &&
                                    Contains("float32 [" + std::to_string(n + 1) + "]"));
    const auto folded =
        outcome(call_into<&torch_calls::filled>(pair.a.peer("b"), at::empty({n / 2, 2}), 1, n));
    CHECK(folded.code() == ErrorCode::invalid_argument);
    const auto type =
        outcome(call_into<&torch_calls::filled>(pair.a.peer("b"), at::empty({n}, at::kInt), 1, n));
    CHECK_THAT(type.message(), Contains("int32"));
  }
  CHECK_THAT(
      outcome(call_into<&torch_calls::doubled>(pair.a.peer("b"), at::empty({1}), at::rand({2})))
          .message(),
      Contains("float32 [2]"));
}

TEST_CASE("a tensor that cannot receive is refused before anything is sent", "[call_into]") {
  Pair pair;
  const auto refusal = [&](const at::Tensor& out) {
    const auto result = outcome(call_into<&torch_calls::filled>(pair.a.peer("b"), out, 1, 3));
    CHECK(result.code() == ErrorCode::invalid_argument);
    CHECK_FALSE(may_have_run(result.error()));
    return result.message();
  };
  CHECK_THAT(refusal(at::Tensor()), Contains("undefined"));
  CHECK_THAT(refusal(at::empty({2, 3}).t()), Contains("contiguous"));
  CHECK_THAT(refusal(at::empty({1}).expand({3})), Contains("contiguous"));
  CHECK_THAT(refusal(at::eye(3).to_sparse()), Contains("sparse"));
  CHECK_THAT(refusal(at::empty({3}, at::TensorOptions().device(at::kMeta))), Contains("CPU"));
}

TEST_CASE("a sparse result is refused where a dense one is received", "[call_into]") {
  Pair pair;
  pair.b.expose("sparse", [] { return at::eye(3).to_sparse(); });
  at::Tensor out = at::zeros({3, 3});
  const auto result = outcome(call_into<at::Tensor()>(pair.a.peer("b"), out, "sparse"));
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK_THAT(result.message(), Contains("the result is sparse float32 [3, 3]"));
}

TEST_CASE("errors of the call itself come through, and the next call works", "[call_into]") {
  Pair pair;
  const at::Tensor out = at::empty({kSmall});
  CHECK(outcome(call_into<&torch_calls::filled>(pair.a.peer("b"), out, 1, kSmall)).code() ==
        ErrorCode::not_found);
  CHECK(outcome(call_into<&torch_calls::filled>(pair.a.peer("nobody"), out, 1, kSmall)).code() ==
        ErrorCode::not_found);
  pair.b.expose<&torch_calls::filled>();
  call_into<&torch_calls::filled>(pair.a.peer("b"), out, 1, kSmall).get();
  CHECK(out.sum().item<float>() == kSmall);
}

TEST_CASE("after a time-out the tensor lives until its late reply has gone", "[call_into]") {
  Pair pair;
  Promise<at::Tensor> answer;
  pair.b.expose("later", [&]() { return answer.get_future(); });
  at::Tensor out = at::zeros({kLarge});
  const auto storage = out.storage().getWeakStorageImpl();
  CallOptions options;
  options.timeout = 10ms;
  Future<void> call = call_into<at::Tensor()>(pair.a.peer("b").with(options), out, "later");
  out = at::Tensor();
  CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
  answer.set_value(at::ones({kLarge}));
  pair.world.run_for(1s);
  CHECK(storage.expired());
}

TEST_CASE("a reply that is coming in at the time-out is received into living memory",
          "[call_into]") {
  test::VirtualWorld world;
  world.network->set_link({.latency = 10ms});
  const Node a = world.root("a");
  const Node b = world.join("b");
  b.expose<&torch_calls::filled>();
  at::Tensor out = at::zeros({kLarge});
  const auto storage = out.storage().getWeakStorageImpl();
  CallOptions options;
  options.timeout = 100ms;
  Future<void> call = call_into<&torch_calls::filled>(a.peer("b").with(options), out, 1, kLarge);
  const at::Tensor view = out.view({-1});
  out = at::Tensor();
  CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
  CHECK(view[0].item<float>() == 1);  // it had begun
  CHECK(view[-1].item<float>() == 0);
  world.run_for(1s);
  CHECK_FALSE(storage.expired());  // `view`
  call_into<&torch_calls::filled>(a.peer("b"), view, 2, kLarge).get();
  CHECK(at::all(view == 2).item<bool>());
}

TEST_CASE("tensors travel over real sockets", "[calls][socket]") {
  for (const std::string address : {"tcp://127.0.0.1:0", "unix-abstract:batchrpc-torch-test"}) {
    INFO(address);
    NodeOptions options;
    options.name = "server";
    options.join = address;
    const Node server(options);
    options.name = "client";
    options.rank = -1;
    options.join = server.address();
    const Node client(options);
    server.expose<&torch_calls::doubled>();
    server.expose<&torch_calls::filled>();
    std::atomic<int> rows{0};
    server.expose("sum", Batcher<float(at::Tensor)>({}, [&](const at::Tensor& batch) {
                    rows += static_cast<int>(batch.size(0));
                    return batch.sum(1);
                  }));
    const at::Tensor tensor = at::rand({kLarge});
    const at::Tensor twice = tensor * 2;
    std::vector<Future<at::Tensor>> calls;
    for (int i = 0; i < 5; ++i)
      calls.push_back(client.call<&torch_calls::doubled>("server", tensor));
    const at::Tensor out = at::empty({kLarge});
    call_into<&torch_calls::filled>(client.peer("server"), out, 4, kLarge).get();
    CHECK(at::all(out == 4).item<bool>());
    for (const auto& call : calls) {
      CHECK(identical(call.get(), twice));
      CHECK(reinterpret_cast<std::uintptr_t>(call.get().data_ptr()) % Bytes::kAlignment == 0);
    }
    std::vector<Future<float>> sums;
    for (int i = 0; i < 20; ++i)
      sums.push_back(client.call<float(at::Tensor)>("server", "sum", at::full({4}, i)));
    for (int i = 0; i < 20; ++i)
      CHECK(sums[static_cast<std::size_t>(i)].get() == static_cast<float>(4 * i));
    CHECK(rows == 20);
  }
}

}  // namespace call_into_test
}  // namespace batchrpc
