#pragma once

#include <concepts>
#include <exception>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/running_call.hpp"

namespace batchrpc {

/// Refuses the call of a handler that has done nothing yet. The caller gets this error, whose
/// may_have_run() is false, so that CallOptions::retry may call again:
///
///     if (!samples.try_push(std::move(sample)))
///       batchrpc::refuse_call(batchrpc::Overloaded("the replay buffer is full"));
///
/// It works in functions and methods of objects, coroutines too, but not in handlers of batches. A
/// refusal is not reported as an error of the handler. It throws something that is no
/// std::exception: do not catch it. Outside of a handler it throws the error itself.
template <std::derived_from<Error> E>
[[noreturn]] void refuse_call(const E& error) {
  if (CallContext::current() == nullptr) throw E(error);
  throw detail::DidNotRun{std::make_exception_ptr(error)};
}

}  // namespace batchrpc
