#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "status/clock.hpp"
#include "status/http_answer.hpp"
#include "status/trace_recorder.hpp"

namespace batchrpc::status {

/// The answers of a status page. Does not keep its node alive. Thread-safe.
class StatusContent {
 public:
  explicit StatusContent(std::weak_ptr<NodeCore> node) : node_(std::move(node)) {}

  /// Sets the address. If only this machine can reach the server, requests for other hosts are
  /// refused from now on.
  void listen(std::string host, bool is_loopback);
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

  [[nodiscard]] HttpReply answer_own(const HttpRequest& request);
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot(const std::shared_ptr<NodeCore>& node);
  [[nodiscard]] HttpReply trace(const HttpRequest& request);

  const std::weak_ptr<NodeCore> node_;
  TraceRecorder recorder_;

  std::mutex mutex_;  // guards the members below
  std::shared_ptr<const Snapshot> snapshot_;
  std::string host_;
  bool checks_host_ = true;
};

}  // namespace batchrpc::status
