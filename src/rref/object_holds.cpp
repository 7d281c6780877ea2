#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/duration_text.hpp"
#include "rref/object_table.hpp"
#include "rref/shrink.hpp"

// The holders of a node's objects: see docs/rref-protocol.md.
namespace batchrpc::detail {

// Records a hold; a second time changes nothing. The caller must hold the lock, here and in all
// functions below that are not public.
void ObjectTable::hold(Entry& entry, Holder& holder, TimePoint now) {
  const auto known = std::find_if(entry.holds.begin(), entry.holds.end(),
                                  [&](const Hold& hold) { return hold.holder == &holder; });
  if (known != entry.holds.end()) {
    known->list = holder.list;
    return;
  }
  entry.holds.push_back({.holder = &holder, .since = now, .list = holder.list});
  ++holder.objects;
}

void ObjectTable::let_go(const ObjectId& object, Holder& holder) {
  const auto at = entries_.find(object);
  if (at == entries_.end()) return;
  const auto ended =
      std::erase_if(at->second.holds, [&](const Hold& hold) { return hold.holder == &holder; });
  if (ended == 0) return;
  holder.objects -= ended;
  drop_if_unused(at);
}

// Releases the objects that listed holders did not list (R6), and all objects of holders that are
// over, in one pass over all objects. Releases them in order, independent of hashing.
void ObjectTable::let_go_of_rest() {
  if (!holders_.any_ended()) return;
  std::vector<ObjectId> released;
  if (holders_.any_ended_holds()) {
    for (auto& [object, entry] : entries_) {
      const auto ended = std::erase_if(entry.holds, [&object = object](const Hold& hold) {
        const bool ends = hold.has_ended(object);
        if (ends) --hold.holder->objects;
        return ends;
      });
      if (ended > 0 && entry.holds.empty()) released.push_back(object);
    }
  }
  holders_.forget_ended();
  std::sort(released.begin(), released.end());
  for (const ObjectId& object : released)
    drop_if_unused(entries_.find(object));
}

// Records a hold. If the object is gone, notifies the holder. Returns false if neither is possible
// and the holder must report it again (R8).
bool ObjectTable::note_hold(const ObjectId& object, Holder& holder, TimePoint now) {
  std::exception_ptr why;
  const bool is_known = entries_.contains(object);
  Entry* const held = entry(object, holder.incarnation, why);
  if (held != nullptr) {
    // An object that is reported again, but not known, was here before; it is not still to come
    // (R6).
    if (!is_known) held->in_line().listed = holder.listing;
    hold(*held, holder, now);
    return true;
  }
  if (code_of(why) == ErrorCode::overloaded) return false;
  outbox_.add(holder.name, no_object(object, why));
  return true;
}

std::vector<Fork> ObjectTable::update(const PeerIdentity& user,
                                      const std::vector<HoldUpdate>& updates) {
  std::vector<Fork> arrived;
  const TimePoint now = node_.loop()->coarse_now();
  const std::lock_guard lock(mutex_);
  if (closed_) return arrived;
  Holder& holder = holders_.at(user);
  for (const HoldUpdate& update : updates) {
    if (update.number < holder.next_update) continue;  // from a session that has ended
    if (update.number == std::numeric_limits<std::uint64_t>::max()) continue;  // none can follow
    holder.next_update = update.number + 1;
    switch (update.kind) {
      case HoldUpdate::release:
        let_go(update.object, holder);
        break;
      case HoldUpdate::hold:
        if (!note_hold(update.object, holder, now)) break;
        if (update.fork.parent == node_.incarnation()) {
          arrived.push_back(update.fork);
        } else if (update.fork.parent != 0) {
          outbox_.add(update.parent, update.fork);
        }
        break;
      case HoldUpdate::list_begins:
        ++holder.list;
        holder.listing = true;
        holder.listed = false;
        holder.not_listed = update.object;
        break;
      case HoldUpdate::list_ends:
        holder.listed = std::exchange(holder.listing, false);
        break;
      default:  // from a later version
        break;
    }
  }
  return arrived;
}

void ObjectTable::await_here(const ObjectId& object) {
  const std::lock_guard lock(mutex_);
  if (!closed_) await(object, 0).held_here = true;
}

void ObjectTable::hold_here(const ObjectId& object) {
  const std::lock_guard lock(mutex_);
  std::exception_ptr why;
  Entry* const held = entry(object, caller_here(), why);
  if (held != nullptr) {
    held->held_here = true;
  } else if (code_of(why) == ErrorCode::overloaded) {
    std::rethrow_exception(why);
  }
}

void ObjectTable::let_go_here(const ObjectId& object) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(object);
  if (at == entries_.end()) return;
  at->second.held_here = false;
  drop_if_unused(at);
}

void ObjectTable::tick() {
  std::vector<PeerIdentity> users;
  {
    const std::lock_guard lock(mutex_);
    users = holders_.identities();
    shrink(entries_);
  }
  std::vector<UserPresence> presences;
  presences.reserve(users.size());
  for (const PeerIdentity& user : users)
    presences.push_back(Holders::presence_of(node_, user));
  std::vector<std::string> ended;  // logged without the lock
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = node_.loop()->now();
    for (std::size_t i = 0; i < users.size(); ++i) {
      Holder* const holder = holders_.find(users[i].incarnation);
      if (holder == nullptr) continue;
      holder->over = holder->absence.is_over(presences[i], now, node_.options());
      if (!holder->over || holder->objects == 0) continue;
      ended.push_back(
          std::to_string(holder->objects) + " RRefs of " + holder->name + " were released: " +
          (presences[i] == UserPresence::dead ? "the node is gone" : "its lease has expired"));
    }
    let_go_of_rest();
  }
  for (const std::string& line : ended)
    node_.log().info(line);
}

// --- reports for people

std::vector<OwnedRRefs> ObjectTable::report() const {
  std::map<std::string_view, OwnedRRefs> types;
  std::map<std::pair<std::string_view, const Holder*>, RRefHolder> holders;
  const std::lock_guard lock(mutex_);
  const TimePoint now = node_.loop()->now();
  for (const auto& [object, entry] : entries_) {
    const std::string_view name = entry.type != nullptr ? entry.type->name : std::string_view();
    OwnedRRefs& owned = types[name];
    owned.type = name;
    ++owned.objects;
    if (entry.held_here) ++owned.held_here;
    if (entry.line) owned.waiting_calls += entry.line->jobs.size();
    for (const Hold& hold : entry.holds) {
      RRefHolder& holder = holders[{name, hold.holder}];
      holder.node = hold.holder->name;
      holder.incarnation = hold.holder->incarnation;
      holder.away = hold.holder->absence.has_begun();
      holder.held_for = std::max(holder.held_for, now - hold.since);
      ++holder.objects;
    }
  }
  for (auto& [key, holder] : holders)
    types[key.first].holders.push_back(std::move(holder));
  std::vector<OwnedRRefs> report;
  report.reserve(types.size());
  for (auto& [name, owned] : types) {
    std::sort(owned.holders.begin(), owned.holders.end(),
              [](const RRefHolder& a, const RRefHolder& b) {
                return std::tie(a.node, a.incarnation) < std::tie(b.node, b.incarnation);
              });
    report.push_back(std::move(owned));
  }
  return report;
}

std::vector<std::string> ObjectTable::held_by_others() const {
  std::vector<std::string> lines;
  for (const OwnedRRefs& owned : report()) {
    const std::string what = owned.type.empty() ? "an object that was never created" : owned.type;
    for (const RRefHolder& holder : owned.holders) {
      lines.push_back(holder.node + " holds " + std::to_string(holder.objects) +
                      (holder.objects == 1 ? " RRef to " : " RRefs to ") + what + ", since " +
                      text_of(holder.held_for));
    }
  }
  return lines;
}

}  // namespace batchrpc::detail
