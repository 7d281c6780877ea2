#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "status/access.hpp"
#include "status/clock.hpp"
#include "status/http_answer.hpp"
#include "status/trace_recorder.hpp"

namespace batchrpc::status {

/// The answers of a status page. Does not keep its node alive. Thread-safe.
class StatusContent {
 public:
  /// `loopback`: the host, if only this machine can reach it: then requests for others are refused.
  /// Else empty.
  StatusContent(std::weak_ptr<NodeCore> node, const Access& access, std::string loopback)
      : node_(std::move(node)), access_(access), loopback_(std::move(loopback)) {}

  [[nodiscard]] HttpReply answer(const HttpRequest& request);
  /// Ends the recording in progress.
  void stop() { recorder_.stop(); }

 private:
  // Kept for a while and shared by all clients.
  struct Snapshot {
    Clock::time_point at{};
    std::string json{};
    std::string prometheus{};
  };

  [[nodiscard]] HttpReply health() const;
  [[nodiscard]] HttpReply answer_own(const HttpRequest& request);
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot(const std::shared_ptr<NodeCore>& node);
  [[nodiscard]] HttpReply trace(const HttpRequest& request);

  const std::weak_ptr<NodeCore> node_;
  const Access access_;
  const std::string loopback_;
  TraceRecorder recorder_;

  std::mutex mutex_;  // guards the member below
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace batchrpc::status
