#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "node/duration_text.hpp"
#include "rref/object_table.hpp"
#include "rref/shrink.hpp"

// By whom a node's objects are held: docs/rref-protocol.md.
namespace batchrpc::detail {

// Under the lock, as all below that take an Entry or a Holder. Again, it changes nothing.
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

// What the holder has not listed it does not hold any more (R6).
void ObjectTable::let_go_of_rest(Holder& holder) {
  const auto& later = holder.not_listed;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (later && at->first.creator == later->creator && at->first.number >= later->number) {
      at = next;
      continue;
    }
    const auto ended = std::erase_if(at->second.holds, [&](const Hold& hold) {
      return hold.holder == &holder && hold.list != holder.list;
    });
    holder.objects -= ended;
    if (ended > 0) drop_if_unused(at);
    at = next;
  }
}

void ObjectTable::release_all(Holder& holder) {
  ++holder.list;
  holder.not_listed.reset();
  let_go_of_rest(holder);
}

// Whether there is no such object: then who says that it holds it is told.
bool ObjectTable::tell_none(const ObjectId& object, const std::string& user) {
  std::exception_ptr why;
  if (object.owner != core_.incarnation()) {
    why = restarted_error();
  } else if (gone_.contains(object)) {
    why = gone_error(object);
  } else {
    return false;
  }
  outbox_.add(
      user,
      {.object = object, .code = static_cast<std::uint16_t>(code_of(why)), .why = describe(why)});
  return true;
}

std::vector<Fork> ObjectTable::update(const PeerIdentity& user,
                                      const std::vector<HoldUpdate>& updates) {
  std::vector<Fork> arrived;
  const TimePoint now = core_.loop()->coarse_now();
  const std::lock_guard lock(mutex_);
  if (closed_) return arrived;
  Holder& holder = holders_.at(user);
  for (const HoldUpdate& update : updates) {
    switch (update.kind) {
      case HoldUpdate::release:
        let_go(update.object, holder);
        break;
      case HoldUpdate::hold:
        if (!tell_none(update.object, user.name) && may_be_awaited(update.object)) {
          const bool is_known = entries_.contains(update.object);
          Entry& held = entry(update.object);
          // What is spoken of again, and not known, has been here rather than is to come (R6).
          if (!is_known) held.in_line().listed = holder.listing;
          hold(held, holder, now);
        }
        if (update.fork.parent == core_.incarnation()) {
          arrived.push_back(update.fork);
        } else if (update.fork.parent != 0) {
          outbox_.add(update.parent, update.fork);
        }
        break;
      case HoldUpdate::list_begins:
        ++holder.list;
        holder.listing = true;
        holder.not_listed = update.object;
        break;
      case HoldUpdate::list_ends:
        if (std::exchange(holder.listing, false)) let_go_of_rest(holder);
        break;
      default:  // of a later version
        break;
    }
  }
  if (holder.objects == 0 && !holder.listing) holders_.erase(holder);
  return arrived;
}

void ObjectTable::hold_here(const ObjectId& object) {
  const std::lock_guard lock(mutex_);
  if (closed_ || gone_.contains(object)) return;
  entry(object).held_here = true;
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
  for (const PeerIdentity& user : users) {
    const Holders::State state = Holders::state_of(core_, user);
    const std::lock_guard lock(mutex_);
    Holder* const holder = holders_.find(user.incarnation);
    if (holder == nullptr) continue;
    if (!Holders::is_over(*holder, state, core_.loop()->now(), core_.options())) continue;
    core_.log().info(
        std::to_string(holder->objects) + " RRefs of " + user.name +
        " are released: " + (state == Holders::State::dead ? "it is gone" : "its lease is over"));
    release_all(*holder);
    holders_.erase(*holder);
  }
}

// --- what people see

std::vector<OwnedRRefs> ObjectTable::report() const {
  std::map<std::string_view, OwnedRRefs> types;
  std::map<std::pair<std::string_view, const Holder*>, RRefHolder> holders;
  const std::lock_guard lock(mutex_);
  const TimePoint now = core_.loop()->now();
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
      holder.away = hold.holder->away_since.has_value();
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
    for (const RRefHolder& holder : owned.holders) {
      lines.push_back(holder.node + " holds " + std::to_string(holder.objects) +
                      (holder.objects == 1 ? " RRef to " : " RRefs to ") + owned.type + ", since " +
                      text_of(holder.held_for));
    }
  }
  return lines;
}

}  // namespace batchrpc::detail
