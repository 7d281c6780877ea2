#include <algorithm>
#include <utility>

#include "reliability/host_name.hpp"
#include "reliability/reference_program.hpp"

// What the nodes of a program of handles do.
namespace batchrpc::test {

using namespace std::chrono_literals;

Bytes ReferenceProgram::ballast() {
  return Bytes::copy(std::vector<std::byte>(one_in(4) ? 20'000 + below(100'000) : 1));
}

CallOptions ReferenceProgram::some_options() {
  CallOptions options;
  if (one_in(5)) options.timeout = 1ms + some_time(200ms);
  if (one_in(8)) options.cancel_when_dropped = true;
  return options;
}

std::shared_ptr<ReferenceProgram::Life> ReferenceProgram::some_life() {
  return lives_.at(static_cast<std::size_t>(below(static_cast<std::uint64_t>(hosts_))));
}

void ReferenceProgram::expose_all(const std::shared_ptr<Life>& life) {
  const Node& node = *life->node;
  node.expose_class<Thing(Id, Id, Bytes)>();
  node.expose<&Thing::use>();
  node.expose<&Thing::keep>();
  node.expose<&Thing::give>();
  node.expose<&Thing::drop>();
  repeat_messages(life);
  node.expose("take", [this, life](Id thing, RRef<Thing> handle, const Bytes& /*ballast*/) {
    if (one_in(3)) return;  // and drops it
    receive(*life, thing, std::move(handle));
  });
  node.expose("ask", [life]() -> std::pair<Id, RRef<Thing>> {
    if (life->held.empty()) return {};
    const Held& held = life->held.back();
    return {held.thing, held.handle};
  });
}

void ReferenceProgram::receive(Life& life, Id thing, RRef<Thing> handle) {
  if (thing == 0 || life.dead || ending_) return;
  const Known& known = things_.at(thing);
  if (known.state == State::destroyed && !loses_objects() && !all_.at(known.life - 1)->dead) {
    complain("thing " + std::to_string(thing) + " is destroyed, and " + life.name +
             " gets a handle to it");
  }
  if (clean_) return;  // all are being dropped
  life.held.push_back({thing, std::move(handle)});
}

template <class T>
void ReferenceProgram::follow(const std::string& what, Id thing, Future<T> future) {
  std::move(future).then([this, what, thing](Result<T> result) {
    if (ending_) return;
    const auto how = result ? std::string("value") : std::string(to_string(result.code()));
    ++outcomes_[how];
    if (result) return;
    using enum ErrorCode;
    using enum ReferenceWeather;
    const ErrorCode code = result.code();
    const Known& known = things_[thing];
    const bool was_there = known.state == State::alive && !all_.at(known.life - 1)->dead;
    const bool is_last = what == "last use";  // long after the last fault
    const bool may_be =
        code == timed_out || code == cancelled || (code == not_found && !was_there) ||
        (weather_ != calm && weather_ != cuts && !is_last &&
         (code == peer_lost || code == not_sent || code == unknown)) ||
        ((weather_ == kills || weather_ == storm) && (code == owner_lost || !was_there)) ||
        loses_objects();
    if (!may_be) {
      complain(what + " of thing " + std::to_string(thing) + " ends in " + how + ": " +
               result.message());
    }
  });
}

void ReferenceProgram::act() {
  const auto from = some_life();
  if (from->dead || from->paused || !from->node) return;
  const int to = static_cast<int>(below(static_cast<std::uint64_t>(hosts_)));
  if (lives_.at(static_cast<std::size_t>(to))->dead && !one_in(4)) return;
  switch (from->held.empty() ? below(3) : below(14)) {
    case 0:
    case 1:
      return create(*from, to);
    case 2:
      return own(*from);
    case 3:
    case 4:
    case 5:
    case 6:
      return pass(*from, to);
    case 7:
      return ask(from, to);
    case 8:
      return use(*from);
    case 9:
      return keep(*from);
    case 10:
      return take_out(from);
    default:
      return drop(*from);
  }
}

void ReferenceProgram::create(Life& from, int to) {
  const Id thing = next_thing_++;
  const Id life = lives_.at(static_cast<std::size_t>(to))->number;
  things_[thing].life = life;
  RRef<Thing> handle =
      from.node->create<Thing(Id, Id, Bytes)>(host_name(to), thing, life, ballast());
  if (one_in(3)) follow("use", thing, handle.call<&Thing::use>(thing, ballast()));
  if (one_in(6)) return;  // dropped at once
  from.held.push_back({thing, std::move(handle)});
}

void ReferenceProgram::own(Life& from) {
  const Id thing = next_thing_++;
  things_[thing].life = from.number;
  from.held.push_back(
      {thing, from.node->own(std::make_shared<Thing>(thing, from.number, Bytes()))});
}

void ReferenceProgram::pass(Life& from, int to) {
  const auto index = static_cast<std::ptrdiff_t>(below(from.held.size()));
  const Held held = from.held.at(static_cast<std::size_t>(index));
  if (one_in(2)) from.held.erase(from.held.begin() + index);
  try {
    if (one_in(4)) {
      from.node->peer(host_name(to))
          .notify<void(Id, RRef<Thing>, Bytes)>("take", held.thing, held.handle, ballast());
      return;
    }
    Future<void> call =
        from.node->peer(host_name(to))
            .with(some_options())
            .call<void(Id, RRef<Thing>, Bytes)>("take", held.thing, held.handle, ballast());
    if (one_in(8)) call.cancel();
  } catch (const Error&) {  // of a message to who is gone
    ++outcomes_["not sent"];
  }
}

void ReferenceProgram::ask(const std::shared_ptr<Life>& from, int to) {
  from->node->peer(host_name(to))
      .with(some_options())
      .call<std::pair<Id, RRef<Thing>>()>("ask")
      .then([this, from](Result<std::pair<Id, RRef<Thing>>> result) {
        if (result) receive(*from, result.value().first, std::move(result.value().second));
      });
}

void ReferenceProgram::use(Life& from) {
  const Held& held = from.held.at(static_cast<std::size_t>(below(from.held.size())));
  if (one_in(3)) {
    try {
      held.handle.notify<&Thing::use>(held.thing, ballast());
    } catch (const Error&) {
      ++outcomes_["not sent"];
    }
    return;
  }
  follow("use", held.thing,
         held.handle.with(some_options()).call<&Thing::use>(held.thing, ballast()));
}

void ReferenceProgram::keep(Life& from) {
  const Held& held = from.held.at(static_cast<std::size_t>(below(from.held.size())));
  const Held& other = from.held.at(static_cast<std::size_t>(below(from.held.size())));
  follow("keep", held.thing, held.handle.call<&Thing::keep>(held.thing, other.handle, other.thing));
}

void ReferenceProgram::take_out(const std::shared_ptr<Life>& from) {
  const Held held = from->held.at(static_cast<std::size_t>(below(from->held.size())));
  if (one_in(2)) {
    follow("drop", held.thing, held.handle.call<&Thing::drop>());
    return;
  }
  held.handle.call<&Thing::give>().then([this, from](Result<std::pair<Id, RRef<Thing>>> result) {
    if (result) receive(*from, result.value().first, std::move(result.value().second));
  });
}

void ReferenceProgram::drop(Life& from) {
  from.held.erase(from.held.begin() + static_cast<std::ptrdiff_t>(below(from.held.size())));
}

}  // namespace batchrpc::test
