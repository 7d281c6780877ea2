#pragma once

#include <string>
#include <string_view>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "call/local_node.hpp"

namespace batchrpc::detail {

/// Returns a function that submits a message to a peer.
inline auto submit_to(LocalNode& node, const std::string& peer) {
  return [&](const FunctionKey& key, OutgoingOptions&& options, Encoder& encoder,
             ReplyHandler&& handler) {
    node.submit(peer, key, std::move(options), encoder, std::move(handler));
  };
}

/// Sends a peer one of the library's own notifications. Returns false if it certainly does not
/// arrive.
template <class... Args>
bool notify(LocalNode& node, const std::string& peer, std::string_view name, const Args&... args) {
  try {
    send_notification<Args...>(submit_to(node, peer),
                               function_key(name, signature<void, Args...>()), {}, args...);
    return true;
  } catch (const Error& error) {
    node.log().debug(std::string(name) + " to " + peer + ": " + error.what());
    return false;
  }
}

}  // namespace batchrpc::detail
