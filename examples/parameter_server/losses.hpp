#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/counted.hpp"

namespace batchrpc_examples {

/// Collects trainers and servers that were lost, failed, or joined, and reports them. It stops when
/// the training ends or is interrupted. Thread-safe.
class Losses {
 public:
  Losses(std::function<void(const std::string&)> tell, std::function<bool()> interrupted)
      : tell_(std::move(tell)), interrupted_(std::move(interrupted)) {}

  void notify(const std::string& notice) const {
    const std::lock_guard lock(mutex_);
    if (needed()) tell_(notice);
  }
  /// A trainer joined late; `all` trainers now train. It is reported once, however often this is
  /// called.
  void trainer_joined(const std::string& trainer, std::uint64_t incarnation, std::size_t all) {
    const std::lock_guard lock(mutex_);
    if (!needed() || !servers_.empty()) return;
    if (std::exchange(joined_[trainer], incarnation) == incarnation) return;
    tell_(trainer + " has joined; the training continues with " +
          counted(static_cast<long long>(all), "trainer"));
  }
  /// `others` trainers still train. Trainers that end because a server was lost do not count as
  /// lost.
  void trainer_lost(const std::string& trainer, const std::string& why, std::size_t others) {
    const std::lock_guard lock(mutex_);
    if (!needed() || !servers_.empty()) return;
    trainers_.push_back(trainer);
    tell_(trainer + " is lost: " + why + "; " +
          (others > 0 ? "the training continues with " + std::to_string(others) + " of the trainers"
                      : "no trainer is left"));
  }
  /// The trainer itself has given the reason.
  void trainer_failed(const std::string& trainer, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!needed() || !servers_.empty()) return;
    failed_trainers_.push_back(trainer + ": " + why);
    tell_(trainer + " ends: " + why);
  }
  void server_lost(const std::string& server, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!needed()) return;
    servers_[server] = why;
    tell_(server + " is lost: " + why + "; the trainers end");
  }
  /// Losses are not reported after this.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }

  [[nodiscard]] std::vector<std::string> trainers() const {
    const std::lock_guard lock(mutex_);
    return trainers_;
  }
  /// Texts such as "trainer0: the gradient contains NaN or infinity".
  [[nodiscard]] std::vector<std::string> failed_trainers() const {
    const std::lock_guard lock(mutex_);
    return failed_trainers_;
  }
  /// The reasons by server name.
  [[nodiscard]] std::map<std::string, std::string> servers() const {
    const std::lock_guard lock(mutex_);
    return servers_;
  }

 private:
  [[nodiscard]] bool needed() const { return !ended_ && !interrupted_(); }

  const std::function<void(const std::string&)> tell_;
  const std::function<bool()> interrupted_;
  mutable std::mutex mutex_;
  bool ended_ = false;
  std::map<std::string, std::uint64_t> joined_;
  std::vector<std::string> trainers_;
  std::vector<std::string> failed_trainers_;
  std::map<std::string, std::string> servers_;
};

}  // namespace batchrpc_examples
