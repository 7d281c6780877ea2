#include "node/retried_request.hpp"

#include <utility>

#include "batchrpc/call/call_extras.hpp"
#include "call/function_table.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

RetriedRequest::RetriedRequest(std::string_view peer, const detail::FunctionKey& function,
                               const detail::OutgoingOptions& options, Encoder& encoder)
    : peer_(peer),
      function_(function.name),
      shown_(shown_name(function)),
      signature_(function.signature),
      hash_(function.hash),
      kept_(options.kept),
      extras_(options.extras),
      words_(encoder.words()),
      payloads_(std::move(encoder.payloads())) {}

void RetriedRequest::submit(NodeCore& core, Duration timeout, detail::ReplyHandler&& handler) {
  // The first attempt begins when the call is made, a later one when it is submitted.
  if (++submissions_ == 2 && extras_) {
    extras_ = std::make_shared<detail::OutgoingExtras>(*extras_);
    extras_->started = {};
  }
  detail::OutgoingOptions options;
  options.timeout = timeout;
  options.kept = kept_;
  options.extras = extras_;
  const detail::EncoderLease copy;
  (*copy).words() = words_;
  (*copy).payloads() = payloads_;
  core.submit(peer_, {function_, signature_, hash_, shown_}, std::move(options), *copy,
              std::move(handler));
}

}  // namespace batchrpc
