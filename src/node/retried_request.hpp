#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/call/remote_call.hpp"

namespace batchrpc {

class NodeCore;

/// The peer, the function and the encoded arguments that a retried call sends in each attempt. All
/// attempts share the payloads. Not thread-safe: the call's owner uses it.
class RetriedRequest {
 public:
  /// Copies the words of `encoder`, and moves its payloads away.
  RetriedRequest(std::string_view peer, const detail::FunctionKey& function,
                 const detail::OutgoingOptions& options, Encoder& encoder);

  /// Submits the request for one attempt. Throws the errors of NodeCore::submit.
  void submit(NodeCore& core, Duration timeout, detail::ReplyHandler&& handler);

  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] const std::string& function() const noexcept { return function_; }
  /// Returns the function's name as the program knows it.
  [[nodiscard]] const std::string& shown_function() const noexcept { return shown_; }

 private:
  const std::string peer_;
  const std::string function_;
  const std::string shown_;
  const std::string signature_;
  const std::uint64_t hash_;
  const std::shared_ptr<const detail::KeptByCall> kept_;
  std::shared_ptr<detail::OutgoingExtras> extras_;
  const std::vector<Word> words_;
  const std::vector<Bytes> payloads_;
  int submissions_ = 0;
};

}  // namespace batchrpc
