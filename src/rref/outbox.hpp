#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "call/local_node.hpp"
#include "rref/rref_messages.hpp"

namespace batchrpc::detail {

/// Collects a node's notifications about references until the loop's next turn. Notifications for
/// one peer leave in order. Thread-safe; may be used under any lock except PeerTable's and the
/// node's.
class Outbox {
 public:
  explicit Outbox(LocalNode& node) : node_(node) {}

  void add(const std::string& peer, HoldUpdate update);
  void add(const std::string& peer, const Fork& arrived);
  void add(const std::string& peer, const ForkQuestion& question);
  void add(const std::string& peer, NoObject none);

  /// Sends all notifications.
  void flush();

 private:
  struct Mail {
    std::vector<HoldUpdate> updates;
    std::vector<Fork> arrived;
    std::vector<ForkQuestion> questions;
    std::vector<NoObject> none;
  };

  Mail& mail_for(const std::string& peer);
  void ask(const std::string& peer, const std::vector<ForkQuestion>& questions);
  bool send(const std::string& peer, const Mail& mail);

  LocalNode& node_;
  std::mutex mutex_;
  std::map<std::string, Mail> mail_;
  std::uint64_t told_ = 0;  // numbers of updates
  bool scheduled_ = false;
};

}  // namespace batchrpc::detail
