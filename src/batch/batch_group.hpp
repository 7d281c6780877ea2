#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
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
      members_.try_emplace(name, Member{.named = true});
    for (const std::string& name : expected_) {
      if (all_callers_) members_.try_emplace(name, Member{.named = true});
    }
    for (auto& [name, member] : members_)
      member.waiting = 0;
    if (active_) waiting([this](const BatchCall& call) { add(call); });
    refresh(is_live);  // also of those whose calls wait: a reducer's are kept
  }

  /// The name of this node, whose own rows have no caller.
  void be_of(std::string node) { node_ = std::move(node); }

  /// Those whom expect() has named.
  [[nodiscard]] const std::vector<std::string>& expected() const noexcept { return expected_; }

  /// A member of all callers, also before its first call; waited for whenever it lives.
  void expect(const std::string& name, const IsLive& is_live) {
    expected_.push_back(name);
    if (!all_callers_) return;
    members_[name].named = true;
    refresh(is_live);
  }

  /// A call has come to wait, or has gone.
  void add(const BatchCall& call) {
    if (!active_) return;
    auto member = members_.find(name_of(call));
    if (member == members_.end()) {
      if (!all_callers_ || !call.caller) return;
      member = members_.try_emplace(call.caller->name, Member{.live = true}).first;
      ++missing_;
    }
    if (member->second.waiting++ == 0 && member->second.live) --missing_;
  }
  void remove(const BatchCall& call) {
    if (!active_) return;
    const auto member = members_.find(name_of(call));
    if (member == members_.end() || member->second.waiting == 0) return;
    if (--member->second.waiting == 0 && member->second.live) ++missing_;
  }

  /// Asks of each member anew whether it lives. One that does not, and is not named, is a member no
  /// more.
  void refresh(const IsLive& is_live) {
    missing_ = 0;
    for (auto& [name, member] : members_) {
      member.live = is_live(name);
      if (member.live && member.waiting == 0) ++missing_;
    }
    std::erase_if(members_,
                  [](const auto& entry) { return !entry.second.live && !entry.second.named; });
  }

  /// Whether every member that lives has a call that waits. A group of nobody is complete.
  [[nodiscard]] bool complete() const noexcept { return active_ && missing_ == 0; }

 private:
  [[nodiscard]] const std::string& name_of(const BatchCall& call) const {
    return call.caller ? call.caller->name : node_;
  }

  struct Member {
    bool live = false;
    bool named = false;
    std::size_t waiting = 0;  // calls
  };

  bool active_ = false;
  bool all_callers_ = false;
  std::unordered_map<std::string, Member> members_;
  std::vector<std::string> expected_;
  std::string node_;
  std::size_t missing_ = 0;  // of the live ones, those without a call that waits
};

}  // namespace batchrpc::detail
