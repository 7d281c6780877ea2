#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "status/clock.hpp"
#include "status/http_answer.hpp"
#include "status/trace_recorder.hpp"

namespace batchrpc::status {

/// What a status page answers. Does not keep its node alive. Thread-safe.
class StatusContent {
 public:
  explicit StatusContent(std::weak_ptr<NodeCore> node) : node_(std::move(node)) {}

  /// From now on requests for another host are refused, if only this machine reaches the server.
  void listen(std::string host, bool is_loopback);
  [[nodiscard]] HttpReply answer(const HttpRequest& request);
  /// Ends what is being recorded.
  void stop() { recorder_.stop(); }

 private:
  // Kept for a while, for all who ask.
  struct Snapshot {
    Clock::time_point at{};
    std::string json{};
    std::string prometheus{};
  };

  [[nodiscard]] HttpReply answer_own(const HttpRequest& request);
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot(const std::shared_ptr<NodeCore>& node);
  [[nodiscard]] HttpReply trace(const HttpRequest& request);

  const std::weak_ptr<NodeCore> node_;
  TraceRecorder recorder_;

  std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Snapshot> snapshot_;
  std::string host_;
  bool checks_host_ = true;
};

}  // namespace batchrpc::status
