#include "node/group_end.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/notify.hpp"
#include "node/group_functions.hpp"
#include "node/group_root.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

using namespace group_functions;

namespace {

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed)
    text += " and " + std::to_string(names.size() - kMostNamed) + " others";
  return text;
}

}  // namespace

GroupEnd::GroupEnd(NodeCore& core, std::shared_ptr<GroupRoot> root)
    : core_(core), root_(std::move(root)), quiescence_(std::make_shared<Quiescence>(core)) {}

bool GroupEnd::is_root() const { return core_.rank() == 0; }

Future<std::string> GroupEnd::done() {
  const auto over = std::make_shared<Promise<std::string>>();
  Future<std::string> future = over->get_future();
  {
    const std::lock_guard lock(mutex_);
    if (over_) {
      throw InvalidArgument("another call of shutdown_together() waits on node " + core_.name() +
                            "; call it once");
    }
    over_ = over;
    done_.insert(core_.incarnation());
  }
  core_.loop()->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->is_root() ? self->advance() : self->send_done();
  });
  return future;
}

std::string GroupEnd::missing() const {
  if (!is_root()) return "the root has not ended the group";
  std::vector<std::string> absent;
  std::vector<std::string> busy;
  const std::vector<Member> members = root_->members();
  const std::lock_guard lock(mutex_);
  for (const Member& member : members) {
    if (!done_.contains(member.incarnation)) absent.push_back(member.name);
    if (!answers_.contains(member.incarnation)) busy.push_back(member.name);
  }
  if (!absent.empty()) return listed(absent) + " did not call shutdown_together()";
  return (busy.empty() ? "calls" : "calls of " + listed(busy)) + " were under way";
}

// --- the root

void GroupEnd::member_is_done(std::uint64_t member) {
  {
    const std::lock_guard lock(mutex_);
    done_.insert(member);
  }
  advance();
}

// Begins a round, unless one is under way or a member is not done.
void GroupEnd::advance() {
  std::vector<std::string> others;
  std::uint64_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || is_over_ || !over_ || !asked_.empty()) return;
    std::vector<Member> members = root_->members();
    const bool all_are_done =
        std::all_of(members.begin(), members.end(),
                    [&](const Member& member) { return done_.contains(member.incarnation); });
    if (!all_are_done) return;
    for (const Member& member : members)
      if (member.name != core_.name()) others.push_back(member.name);
    asked_ = std::move(members);
    answers_.clear();
    round = ++round_;
  }
  ask(others, round);
  report_quiet(round);
}

void GroupEnd::ask(const std::vector<std::string>& names, std::uint64_t round) {
  for (const std::string& name : names)
    detail::notify(core_, name, kReportQuiet, round);
}

void GroupEnd::member_is_quiet(std::uint64_t member, std::uint64_t round, std::uint64_t calls) {
  bool is_over = false;
  std::vector<Member> members;
  {
    const std::lock_guard lock(mutex_);
    const bool is_asked = std::any_of(asked_.begin(), asked_.end(), [&](const Member& each) {
      return each.incarnation == member;
    });
    if (finished_ || round != round_ || !is_asked) return;
    answers_[member] = calls;
    if (answers_.size() < asked_.size()) return;
    members.swap(asked_);
    is_over = is_over_ = answers_ == former_;
    former_ = answers_;
  }
  if (!is_over) return advance();
  for (const Member& each : members)
    if (each.name != core_.name()) detail::notify(core_, each.name, kEnd);
  // This node ends when the others know.
  quiescence_->when_quiet([weak = weak_from_this()](std::uint64_t /*calls*/) {
    if (const auto self = weak.lock()) self->finish({});
  });
}

// The answers of the former members are not those of the group now. A member that was only cut off
// reports again that it is done.
void GroupEnd::members_changed() {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    asked_.clear();
    former_.clear();
    const std::vector<Member> members = root_->members();
    std::erase_if(done_, [&](std::uint64_t incarnation) {
      return std::none_of(members.begin(), members.end(),
                          [&](const Member& member) { return member.incarnation == incarnation; });
    });
  }
  advance();
}

// --- any member

void GroupEnd::report_quiet(std::uint64_t round) {
  // The question is repeated as long as there is no answer.
  if (std::exchange(reports_for_, round) == round) return;
  quiescence_->when_quiet([weak = weak_from_this(), round](std::uint64_t calls) {
    const auto self = weak.lock();
    if (!self || self->core_.refusal()) return;
    self->reports_for_ = 0;
    NodeCore& core = self->core_;
    if (self->is_root()) {  // not at once: a round follows the other
      return core.loop()->post([weak, round, calls] {
        const auto root = weak.lock();
        if (root) root->member_is_quiet(root->core_.incarnation(), round, calls);
      });
    }
    try {
      detail::notify(core, core.peers().name_of(0), kQuiet, round, calls);
    } catch (const NotFound&) {  // the root is forgotten, so this node does not wait for it
    }
  });
}

void GroupEnd::send_done() {
  std::string root;
  try {
    root = core_.peers().name_of(0);
  } catch (const NotFound&) {
    return finish("the root is lost");
  }
  if (!core_.peers().is_live(root)) return finish("the root '" + root + "' is lost");
  detail::notify(core_, root, kDone);
}

void GroupEnd::root_lost(const std::string& name, const std::string& reason) {
  finish("the root '" + name + "' is lost (" + reason + ")");
}

void GroupEnd::tick() {
  std::vector<std::string> late;
  std::uint64_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || !over_) return;
    for (const Member& member : asked_) {
      if (member.name != core_.name() && !answers_.contains(member.incarnation))
        late.push_back(member.name);
    }
    round = round_;
  }
  is_root() ? ask(late, round) : send_done();
}

void GroupEnd::finish(const std::string& why) {
  std::shared_ptr<Promise<std::string>> over;
  {
    const std::lock_guard lock(mutex_);
    if (!over_ || std::exchange(finished_, true)) return;
    over = over_;
  }
  over->set_value(why);
}

}  // namespace batchrpc
