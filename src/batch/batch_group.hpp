#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// The peers that a batch waits for, BatchOptions::all_of: which of them are live, and which have a
/// waiting call. Not thread-safe.
class BatchGroup {
 public:
  using IsLive = std::function<bool(std::string_view peer)>;

  /// Starts again with these names; `waiting` calls its argument for each waiting call.
  template <class ForEachWaiting>
  void configure(const std::vector<std::string>& names, const IsLive& is_live,
                 const ForEachWaiting& waiting) {
    members_.clear();
    for (const std::string& name : names)
      members_.try_emplace(name);
    if (!members_.empty()) waiting([this](const BatchCall& call) { add(call); });
    refresh(is_live);  // also for members with waiting calls: a reducer keeps calls of dead ones
  }

  /// The name of this node; its own rows have no caller.
  void be_of(std::string node) { node_ = std::move(node); }

  /// A call has begun to wait, or has left.
  void add(const BatchCall& call) {
    if (members_.empty()) return;
    const auto member = members_.find(name_of(call));
    if (member == members_.end()) return;
    if (member->second.waiting++ == 0 && member->second.live) --missing_;
  }
  void remove(const BatchCall& call) {
    if (members_.empty()) return;
    const auto member = members_.find(name_of(call));
    if (member == members_.end() || member->second.waiting == 0) return;
    if (--member->second.waiting == 0 && member->second.live) ++missing_;
  }

  /// Checks again whether each member is live.
  void refresh(const IsLive& is_live) {
    missing_ = 0;
    for (auto& [name, member] : members_) {
      member.live = is_live(name);
      if (member.live && member.waiting == 0) ++missing_;
    }
  }

  /// Whether every live member has a waiting call. A group without live members is complete.
  /// Without a group, returns false.
  [[nodiscard]] bool complete() const noexcept { return !members_.empty() && missing_ == 0; }

 private:
  struct Member {
    bool live = false;
    std::size_t waiting = 0;  // calls
  };

  [[nodiscard]] const std::string& name_of(const BatchCall& call) const {
    return call.caller ? call.caller->name : node_;
  }

  std::unordered_map<std::string, Member> members_;
  std::string node_;
  std::size_t missing_ = 0;  // live members without a waiting call
};

}  // namespace batchrpc::detail
