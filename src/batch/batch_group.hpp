#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// The peers that a batch waits for: those of BatchOptions::all_of, or all callers. Knows which of
/// them live, and which have a call waiting. Not thread-safe.
class BatchGroup {
 public:
  using IsLive = std::function<bool(std::string_view peer)>;

  /// Begins anew: `waiting` calls its argument with each call that waits.
  template <class ForEachWaiting>
  void configure(const BatchOptions& options, const IsLive& is_live,
                 const ForEachWaiting& waiting) {
    const bool kept = all_callers_ && options.all_callers;
    all_callers_ = options.all_callers;
    active_ = all_callers_ || !options.all_of.empty();
    if (!kept) members_.clear();
    for (const std::string& name : options.all_of)
      members_.try_emplace(name);
    for (auto& [name, member] : members_)
      member.waiting = 0;
    refresh(is_live);
    if (active_) waiting([this](const BatchCall& call) { add(call); });
  }

  /// Whether there is a group at all.
  [[nodiscard]] bool active() const noexcept { return active_; }

  /// A member that has not called yet, of all callers.
  void expect(const std::string& name, const IsLive& is_live) {
    if (!all_callers_ || !is_live(name)) return;
    if (members_.try_emplace(name, Member{.live = true}).second) ++live_, ++missing_;
  }

  /// A call has come to wait, or has gone.
  void add(const BatchCall& call) {
    if (!active_ || !call.caller) return;
    auto member = members_.find(call.caller->name);
    if (member == members_.end()) {
      if (!all_callers_) return;
      member = members_.try_emplace(call.caller->name, Member{.live = true}).first;
      ++live_, ++missing_;
    }
    if (member->second.waiting++ == 0 && member->second.live) --missing_;
  }
  void remove(const BatchCall& call) {
    if (!active_ || !call.caller) return;
    const auto member = members_.find(call.caller->name);
    if (member == members_.end() || member->second.waiting == 0) return;
    if (--member->second.waiting == 0 && member->second.live) ++missing_;
  }

  /// Asks of each member anew whether it lives. A caller that does not is a member no more.
  void refresh(const IsLive& is_live) {
    live_ = 0;
    missing_ = 0;
    for (auto& [name, member] : members_) {
      member.live = is_live(name);
      if (!member.live) continue;
      ++live_;
      if (member.waiting == 0) ++missing_;
    }
    if (all_callers_) std::erase_if(members_, [](const auto& entry) { return !entry.second.live; });
  }

  /// Whether every member that lives has a call that waits. A group of nobody is complete.
  [[nodiscard]] bool complete() const noexcept { return active_ && missing_ == 0; }

 private:
  struct Member {
    bool live = false;
    std::size_t waiting = 0;  // calls
  };

  bool active_ = false;
  bool all_callers_ = false;
  std::unordered_map<std::string, Member> members_;
  std::size_t live_ = 0;
  std::size_t missing_ = 0;  // of the live ones, those without a call that waits
};

}  // namespace batchrpc::detail
