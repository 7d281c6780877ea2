#pragma once

namespace batchrpc {

/// Is notified when a frame is passed to the stream.
class FrameWatch {
 public:
  virtual ~FrameWatch() = default;
  /// Called once, on the thread that is about to write, without a lock.
  virtual void taken() noexcept = 0;
};

}  // namespace batchrpc
