#include <string_view>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/function_table.hpp"
#include "node/node_core.hpp"
#include "node/retried_call.hpp"

// The start of calls that this node makes.
namespace batchrpc {

void NodeCore::submit(std::string_view peer, const detail::FunctionKey& function,
                      detail::OutgoingOptions&& options, Encoder& encoder,
                      detail::ReplyHandler&& handler) {
  threads_.refuse_forked_copy();
  try {
    // The library's own notifications are still sent, such as those that give references back.
    const bool notifies = !options.wants_reply && is_of_library(function.name);
    if (stopping_.load(std::memory_order_relaxed) && !notifies) {
      throw ShutDown("node " + options_.name + " is shut down; make a new one");
    }
    WaitContext::suggest(threads_.context());
    if (options.extras) tracer_.complete(options.extras, options_.name, peer, shown_name(function));
    if (options.retry.attempts != 1) {
      RetriedCall::start(*this, peer, function, std::move(options), encoder, std::move(handler));
      return;
    }
    peers_->session(peer)->outgoing().submit(function, std::move(options), encoder,
                                             std::move(handler));
  } catch (Error& error) {
    report_refusal(error, shown_name(function), peer, loop()->now());
    const bool is_known = error.code() != ErrorCode::not_found || peers_->is_known(peer);
    statistics_.counters().refused(peer, counted_name(function.name), error, loop()->now(),
                                   is_known);
    throw;
  }
}

Future<void> NodeCore::wait_for_credit(std::string_view peer, std::size_t bytes) {
  threads_.refuse_forked_copy();
  if (const std::exception_ptr refused = refusal()) std::rethrow_exception(refused);
  WaitContext::suggest(threads_.context());
  return peers_->session(peer)->outgoing().wait_for_credit(bytes);
}

}  // namespace batchrpc
