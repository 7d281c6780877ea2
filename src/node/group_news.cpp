#include "node/group_news.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "node/group_functions.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

using namespace group_functions;

namespace {

// Calls `send` with a submit function. Logs an error that is thrown at once.
template <class Send>
void send_news(NodeCore& core, const std::string& name, const Member& about, Send send) {
  try {
    send([&](const auto& key, detail::OutgoingOptions&& options, Encoder& encoder,
             detail::ReplyHandler&& handler) {
      core.submit(name, key, std::move(options), encoder, std::move(handler));
    });
  } catch (const Error& error) {
    core.log().info("could not notify " + name + " of " + about.name + ": " + error.what());
  }
}

}  // namespace

void GroupNews::joined(const Member& member, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (takes_news(name)) notify_joined(name, member);
  }
}

void GroupNews::left(const Member& member, const std::string& reason,
                     const std::vector<std::string>& names) {
  behind_.erase(member.name);
  for (const std::string& name : names) {
    if (takes_news(name)) notify_left(name, member, reason);
  }
}

// News for a member that does not read would fill the memory. It gets all of them later.
bool GroupNews::takes_news(const std::string& name) {
  if (!core_.peers().is_behind(name)) return true;
  behind_.insert(name);
  return false;
}

void GroupNews::is_up_to_date(const Member& member) {
  sessions_ended_[member.incarnation] = core_.peers().standing(member.name).sessions_ended;
}

void GroupNews::bring_up_to_date(const Member& member, const std::vector<Member>& members,
                                 const std::vector<Member>& lost) {
  is_up_to_date(member);
  notify_of_all(member.name, members, lost);
}

void GroupNews::tick(const std::vector<Member>& members, const std::vector<Member>& lost) {
  std::map<std::uint64_t, std::uint64_t> sessions_ended;
  for (const Member& member : members) {
    const PeerStanding standing = core_.peers().standing(member.name);
    if (standing.incarnation != member.incarnation) continue;
    sessions_ended[member.incarnation] = standing.sessions_ended;
    // The session that ended may have carried news, although the member is not lost.
    const auto before = sessions_ended_.find(member.incarnation);
    const bool may_lack_news =
        before != sessions_ended_.end() && before->second != standing.sessions_ended;
    if (may_lack_news && standing.live) behind_.insert(member.name);
    if (!standing.live || core_.peers().is_behind(member.name)) continue;
    if (behind_.erase(member.name) > 0) notify_of_all(member.name, members, lost);
  }
  sessions_ended_.swap(sessions_ended);
}

void GroupNews::notify_of_all(const std::string& name, const std::vector<Member>& members,
                              const std::vector<Member>& lost) const {
  for (const Member& member : lost)
    notify_left(name, member, "it was lost while the root's news did not reach this node");
  for (const Member& member : members) {
    if (member.name != core_.name() && member.name != name) notify_joined(name, member);
  }
}

void GroupNews::notify_joined(const std::string& name, const Member& about) const {
  send_news(core_, name, about, [&](const auto& submit) {
    detail::send_notification<Member>(submit, key_of<void, Member>(kJoined), {}, about);
  });
}

void GroupNews::notify_left(const std::string& name, const Member& about,
                            const std::string& reason) const {
  send_news(core_, name, about, [&](const auto& submit) {
    detail::send_notification<std::string, std::uint64_t, std::string>(
        submit, key_of<void, std::string, std::uint64_t, std::string>(kLeft), {}, about.name,
        about.incarnation, reason);
  });
}

}  // namespace batchrpc
