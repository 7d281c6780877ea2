#include "batchrpc/batch/batcher.hpp"

#include "batchrpc/torch/batch.hpp"

// The batcher that batchrpc/torch/batch.hpp promises.
namespace batchrpc {
namespace detail {
template class TypedCall<at::Tensor, at::Tensor>;
template class SharedReply<at::Tensor>;
template class LocalReply<at::Tensor>;
template class RemoteReply<at::Tensor>;
template class AnsweredCall<LocalReply<at::Tensor>, at::Tensor, at::Tensor>;
template class AnsweredCall<RemoteReply<at::Tensor>, at::Tensor, at::Tensor>;
template class TypedRun<at::Tensor, at::Tensor>;
template class BatcherState<at::Tensor, at::Tensor>;
}  // namespace detail
template class Batcher<at::Tensor(at::Tensor)>;
template class detail::TypedFunction<Batcher<at::Tensor(at::Tensor)>,
                                     detail::FunctionTraits<Batcher<at::Tensor(at::Tensor)>>>;
}  // namespace batchrpc
