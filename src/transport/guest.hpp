#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "transport/host_context.hpp"
#include "transport/presence.hpp"
#include "transport/site.hpp"

namespace batchrpc::detail {

/// A loop on an embedder's io_context, among other loops there: all run their tasks in the turns of
/// that context, which has work for as long as the loop has something to wait for.
class Guest final : public Site, public std::enable_shared_from_this<Guest> {
 public:
  explicit Guest(const std::shared_ptr<HostContext>& host) : Site(host->reactor()), host_(host) {}

  /// Runs `task` in its turn; destroys it if the loop has left.
  void run(Task task) override;

  void hold() override;
  void release() override;
  /// The loop waits for nothing more.
  void leave();

  /// Who runs tasks of the loop, or waits in one.
  [[nodiscard]] Presence& presence() noexcept { return presence_; }

 private:
  const std::shared_ptr<HostContext> host_;
  Presence presence_;
  std::atomic<bool> left_{false};

  std::mutex mutex_;  // guards holds_, and left_ while it is set
  int holds_ = 0;
};

}  // namespace batchrpc::detail
