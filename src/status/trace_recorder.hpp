#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace batchrpc {
class NodeCore;
}  // namespace batchrpc

namespace batchrpc::status {

/// Records traces of the calls that a node makes and answers, one at a time. Thread-safe.
class TraceRecorder {
 public:
  static constexpr std::size_t kMaxEvents = 50'000;  ///< further ones are only counted; about 75 MB

  enum class Outcome : unsigned char {
    recorded,
    busy,
    stopped,
    node_ended,
    not_wanted  ///< the client is gone
  };
  struct Trace {
    Outcome outcome = Outcome::recorded;
    std::string json{};  ///< chrome_trace()
  };

  /// What is recorded.
  struct Choice {
    std::uint64_t sample = 1;  ///< one call in so many, with all that it causes
    bool operators = true;     ///< whether also LibTorch's operators
  };
  /// Blocks for `time`, or until stop() is called, the node ends, or `is_gone()` returns true; it
  /// is called a few times a second. Does not keep the node alive.
  [[nodiscard]] Trace record(const std::weak_ptr<NodeCore>& node, std::chrono::milliseconds time,
                             const Choice& choice, const std::function<bool()>& is_gone);
  [[nodiscard]] bool is_recording() const;
  /// Ends the recording in progress, and refuses further ones.
  void stop();

 private:
  [[nodiscard]] Outcome wait(const std::weak_ptr<NodeCore>& node, std::chrono::milliseconds time,
                             const std::function<bool()>& is_gone);

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable stopping_;
  bool recording_ = false;
  bool stopped_ = false;
};

}  // namespace batchrpc::status
