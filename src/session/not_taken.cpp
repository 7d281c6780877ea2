#include "session/not_taken.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc {

std::exception_ptr not_taken_error(NotTaken why, const std::string& what,
                                   const NodeOptions& receiver, bool may_have_run) {
  const std::string size = std::to_string(why.bytes) + " bytes";
  if (why.reason == NotTaken::memory) {
    return make_error(
        ErrorCode::overloaded,
        what + ": " + receiver.name + " has no memory for its " + size + "; send less at once",
        may_have_run);
  }
  const bool of_frame = why.reason == NotTaken::frame;
  const std::uint64_t limit =
      of_frame ? receiver.limits.max_frame_bytes : receiver.limits.max_payload_bytes;
  return make_error(ErrorCode::invalid_argument,
                    what + ": its " + size + (of_frame ? "" : " of payloads") + " are more than " +
                        receiver.name + " takes (NodeOptions::limits." +
                        (of_frame ? "max_frame_bytes" : "max_payload_bytes") + " of " +
                        receiver.name + ", " + std::to_string(limit) + "); " +
                        (of_frame ? "send large data as Bytes or tensors" : "send less at once") +
                        ", or raise that limit",
                    may_have_run);
}

}  // namespace batchrpc
