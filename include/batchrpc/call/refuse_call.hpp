#pragma once

#include <concepts>
#include <exception>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/running_call.hpp"

namespace batchrpc {

/// In a handler that has done nothing yet: refuses its call with this error, whose may_have_run()
/// is then false at the caller, so that CallOptions::retry may call again:
///
///     if (!samples.try_push(std::move(sample)))
///       batchrpc::refuse_call(batchrpc::Overloaded("the replay buffer is full"));
///
/// For functions and methods of objects, coroutines too; not for handlers of batches. It is not
/// reported as an error of the handler. What it throws is no std::exception; do not catch it.
/// Outside of a handler it throws the error itself.
template <std::derived_from<Error> E>
[[noreturn]] void refuse_call(const E& error) {
  if (CallContext::current() == nullptr) throw E(error);
  throw detail::DidNotRun{std::make_exception_ptr(error)};
}

}  // namespace batchrpc
