#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// Why a node drops a call or reply that its peer sends.
struct NotTaken {
  enum Reason : std::uint8_t {
    frame,     ///< its frame is larger than NodeOptions::limits.max_frame_bytes
    payloads,  ///< its payloads are larger than NodeOptions::limits.max_payload_bytes
    memory,    ///< the node has no memory for it
  };
  Reason reason = frame;
  std::uint64_t bytes = 0;  ///< the size that it has, or would have
};

/// The error of the call: InvalidArgument, or Overloaded without memory. `what` says what was
/// dropped, and `receiver` has the options of the node that dropped it.
[[nodiscard]] std::exception_ptr not_taken_error(NotTaken why, const std::string& what,
                                                 const NodeOptions& receiver, bool may_have_run);

}  // namespace batchrpc
