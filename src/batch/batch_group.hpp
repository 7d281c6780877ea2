#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// The peers that a batch waits for, BatchOptions::all_of. Knows which of them live, and which have
/// a call that waits. Not thread-safe.
class BatchGroup {
 public:
  using IsLive = std::function<bool(std::string_view peer)>;

  /// Begins anew with these names: `waiting` calls its argument with each call that waits.
  template <class ForEachWaiting>
  void configure(const std::vector<std::string>& names, const IsLive& is_live,
                 const ForEachWaiting& waiting) {
    members_.clear();
    for (const std::string& name : names)
      members_.try_emplace(name);
    if (!members_.empty()) waiting([this](const BatchCall& call) { add(call); });
    refresh(is_live);  // also of those whose calls wait: a reducer keeps calls of the dead
  }

  /// The name of this node, whose own rows have no caller.
  void be_of(std::string node) { node_ = std::move(node); }

  /// A call has come to wait, or has gone.
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

  /// Asks of each member anew whether it lives.
  void refresh(const IsLive& is_live) {
    missing_ = 0;
    for (auto& [name, member] : members_) {
      member.live = is_live(name);
      if (member.live && member.waiting == 0) ++missing_;
    }
  }

  /// Whether every member that lives has a call that waits. A group whose members are all gone is
  /// complete; where there is no group, none is.
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
  std::size_t missing_ = 0;  // of the live ones, those without a call that waits
};

}  // namespace batchrpc::detail
