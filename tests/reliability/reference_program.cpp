#include "reliability/reference_program.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "reliability/host_name.hpp"

namespace reliability {

Thing::Thing(std::uint64_t id, std::uint64_t life, const batchrpc::Bytes& /*ballast*/)
    : id_(id), life_(life) {
  model->made(id_, *this);
}
Thing::~Thing() {
  if (model != nullptr) model->destroyed(id_, *this);
}
std::uint64_t Thing::use(std::uint64_t id, const batchrpc::Bytes& /*ballast*/) {
  model->used(id_, id, *this);
  return id_;
}
void Thing::keep(std::uint64_t id, batchrpc::RRef<Thing> other, std::uint64_t other_id) {
  model->used(id_, id, *this);
  held_id_ = other_id;
  held_ = std::move(other);
}
std::pair<std::uint64_t, batchrpc::RRef<Thing>> Thing::give() { return {held_id_, held_}; }
void Thing::drop() {
  held_id_ = 0;
  held_ = {};
}

void Things::made(std::uint64_t id, const Thing& thing) {
  auto& known = program_.things_[id];
  if (known.state != batchrpc::test::ReferenceProgram::State::awaited) {
    program_.complain("thing " + std::to_string(id) + " is made twice");
  }
  known = {batchrpc::test::ReferenceProgram::State::alive, thing.life()};
  program_.objects_[id] = &thing;
  ++program_.outcomes_["objects"];
}

// No handle that lives on a node that lives may be to it, unless what goes wrong is more than
// the protocol promises to survive.
void Things::destroyed(std::uint64_t id, const Thing& thing) {
  program_.things_[id].state = batchrpc::test::ReferenceProgram::State::destroyed;
  program_.objects_.erase(id);
  const auto& owner = *program_.all_.at(thing.life() - 1);
  if (owner.dead || program_.ending_ || program_.loses_objects()) return;
  for (const auto& life : program_.lives_) {
    if (life->dead) continue;
    for (const auto& held : life->held) {
      if (held.thing != id) continue;
      program_.complain("thing " + std::to_string(id) + " of " + owner.name +
                        " is destroyed, and " + life->name + " holds it");
      return;
    }
  }
  for (const auto& [other, object] : program_.objects_) {
    if (object->holds() == id && !program_.all_.at(object->life() - 1)->dead) {
      program_.complain("thing " + std::to_string(id) + " of " + owner.name +
                        " is destroyed, and thing " + std::to_string(other) + " of " +
                        program_.all_.at(object->life() - 1)->name + " holds it");
      return;
    }
  }
}

void Things::used(std::uint64_t id, std::uint64_t as, const Thing& thing) {
  if (id != as) {
    program_.complain("thing " + std::to_string(id) + " is called as thing " + std::to_string(as));
  }
  if (program_.all_.at(thing.life() - 1)->dead) {
    program_.complain("thing " + std::to_string(id) + " of a dead node is called");
  }
}

}  // namespace reliability

namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kReferenceActing = 4s;
constexpr Duration kLease = 30s;

ReferenceWeather reference_weather_of(std::uint64_t seed) {
  using enum ReferenceWeather;
  constexpr std::array kAll{apart, kills, cuts, storm, apart, kills, expired, calm};
  return kAll.at(seed % kAll.size());
}

}  // namespace

ReferenceProgram::ReferenceProgram(std::uint64_t seed)
    : weather_(reference_weather_of(seed)), random_(seed), world_(seed) {
  if (std::getenv("BATCHRPC_TRACE") != nullptr) world_.trace(std::cerr);  // NOLINT: one thread
  static std::unique_ptr<reliability::Things> things;
  things = std::make_unique<reliability::Things>(*this);
  Thing::model = things.get();
  hosts_ = 2 + static_cast<int>(below(5));
}

// What is left of a program that has thrown.
ReferenceProgram::~ReferenceProgram() {
  ending_ = true;
  for (const auto& life : all_) {
    life->held.clear();
    life->node.reset();
  }
  Thing::model = nullptr;
}

void ReferenceProgram::complain(const std::string& what) {
  complaints_.push_back(std::to_string(world_.time() / 1us) + " us: " + what);
}

// Whether objects may be gone though there are handles to them.
bool ReferenceProgram::loses_objects() const {
  return weather_ == ReferenceWeather::expired || weather_ == ReferenceWeather::storm;
}

std::shared_ptr<ReferenceProgram::Life> ReferenceProgram::begin_life(int host) {
  auto life = std::make_shared<Life>();
  life->host = host;
  life->name = host_name(host);
  all_.push_back(life);
  life->number = all_.size();
  return life;
}

void ReferenceProgram::live(const std::shared_ptr<Life>& life, Node node) {
  life->node.emplace(std::move(node));
  expose_all(life);
}

void ReferenceProgram::run() {
  const auto link = [this] {
    LinkOptions options{.latency = some_time(5ms), .jitter = some_time(20ms)};
    if (one_in(3)) options.capacity = 1000 + below(60'000);
    return options;
  };
  NodeOptions quiet{.shutdown_timeout = Duration::zero(), .logging = {.sink = [](auto, auto) {}}};
  quiet.call_timeout = 20s;
  if (std::getenv("BATCHRPC_TRACE") != nullptr) quiet.logging.level = LogLevel::debug;  // NOLINT
  for (int host = 0; host < hosts_; ++host) {
    const auto life = lives_.emplace_back(begin_life(host));
    live(life, Node(world_.options(life->name, quiet)));
  }
  world_.run_for(50ms);
  for (int a = 0; a < hosts_; ++a) {
    for (int b = 0; b < a; ++b) {
      world_.network().set_link(host_name(a), host_name(b), link());
    }
  }
  plan_faults();
  const std::uint64_t actions = 30 + below(60);
  for (std::uint64_t i = 0; i < actions; ++i)
    world_.after(some_time(kReferenceActing), [this] { act(); });
  world_.run_for(kReferenceActing + (loses_objects() ? kLease + 15s : Duration(30s)));
  heal();
  end();
}

// --- faults

void ReferenceProgram::plan_faults() {
  using enum ReferenceWeather;
  if (weather_ == calm) return;
  const std::uint64_t count = 1 + below(weather_ == cuts ? 12 : 5);
  for (std::uint64_t i = 0; i < count; ++i) {
    // All of them together are shorter than the lease, or one is longer.
    const Duration lasts = weather_ == expired && i == 0
                               ? kLease + 5s + some_time(20s)
                               : some_time(kLease - kReferenceActing - 6s);
    world_.after(some_time(kReferenceActing), [this, lasts] { fault(lasts); });
  }
}

// Two hosts of which the first holds an object of the second, if there are such.
void ReferenceProgram::choose_holder_and_owner(int& a, int& b) const {
  for (const auto& life : lives_) {
    for (const Held& held : life->held) {
      const int owner = all_.at(things_.at(held.thing).life - 1)->host;
      if (owner == life->host) continue;
      a = life->host;
      b = owner;
      return;
    }
  }
}

void ReferenceProgram::fault(Duration lasts) {
  using enum ReferenceWeather;
  if (clean_) return;
  int a = static_cast<int>(below(static_cast<std::uint64_t>(hosts_)));
  int b = (a + 1 + static_cast<int>(below(static_cast<std::uint64_t>(hosts_ - 1)))) % hosts_;
  if (lasts > kLease) choose_holder_and_owner(a, b);
  const std::string first = host_name(a);
  const std::string second = host_name(b);
  const bool kills_one = weather_ == kills || (weather_ == storm && one_in(2));
  if (kills_one) {
    if (a != 0) kill(a);
    return;
  }
  const bool parts = lasts > kLease;
  if (weather_ == cuts || (!parts && one_in(4))) return world_.network().cut(first, second);
  const auto life = lives_.at(static_cast<std::size_t>(a));
  if (!parts && one_in(3)) {
    if (life->dead || life->paused) return;
    life->paused = true;
    world_.pause(first);
    world_.after(lasts, [this, life] {
      if (life->dead || !std::exchange(life->paused, false)) return;
      world_.resume(life->name);
    });
    return;
  }
  if (parts || one_in(2)) {
    world_.network().partition(first, second);
  } else {
    world_.network().partition_one_way(first, second);
  }
  world_.after(lasts, [this, first, second] { world_.network().heal(first, second); });
}

void ReferenceProgram::kill(int host) {
  const auto life = lives_.at(static_cast<std::size_t>(host));
  if (life->dead || !life->node) return;
  life->dead = true;
  world_.kill(life->name);
  if (one_in(4)) return;  // for good
  world_.after(some_time(12s), [this, host] {
    const auto next = begin_life(host);
    lives_.at(static_cast<std::size_t>(host)) = next;
    NodeOptions quiet{.shutdown_timeout = Duration::zero(), .logging = {.sink = [](auto, auto) {}}};
    if (std::getenv("BATCHRPC_TRACE") != nullptr) quiet.logging.level = LogLevel::debug;  // NOLINT
    Node::start(world_.options(next->name, quiet)).then([this, next](Result<Node> node) {
      if (!node) return complain(next->name + " could not join: " + node.message());
      if (!next->dead) live(next, std::move(node).value());
    });
  });
}

void ReferenceProgram::heal() {
  clean_ = true;
  for (int a = 0; a < hosts_; ++a) {
    const auto life = lives_.at(static_cast<std::size_t>(a));
    if (!life->dead && std::exchange(life->paused, false)) world_.resume(life->name);
    for (int b = 0; b < a; ++b)
      world_.network().heal(host_name(a), host_name(b));
  }
}

// --- the end

// When all handles are gone, and leases have run out, nothing is left.
void ReferenceProgram::end() {
  world_.run_for(20s);
  for (const auto& life : lives_) {
    for (const Held& held : life->held) {
      if (!life->node) continue;
      const auto known = things_.at(held.thing);
      const bool is_there = known.state == State::alive && !all_.at(known.life - 1)->dead;
      if (is_there || loses_objects()) {
        follow("last use", held.thing,
               held.handle.call<&Thing::use>(held.thing, Bytes::allocate(1)));
      }
    }
  }
  world_.run_for(10s);
  for (const auto& life : lives_)
    life->held.clear();
  for (const auto& [id, object] : std::map(objects_))
    const_cast<Thing*>(object)->drop();  // NOLINT: those that hold each other
  const bool leases = weather_ != ReferenceWeather::calm && weather_ != ReferenceWeather::cuts;
  world_.run_for(leases ? kLease + 10s : Duration(5s));
  for (const auto& [id, object] : objects_) {
    const Life& owner = *all_.at(object->life() - 1);
    if (owner.dead) continue;
    complain("thing " + std::to_string(id) + " of " + owner.name + " lives, and has no handle");
  }
  for (const auto& life : lives_) {
    if (life->dead) continue;
    if (!life->node) {
      complain(life->name + " could not join again");
      continue;
    }
    const RRefReport report = rref_report(*life->node);
    if (!report.owned.empty()) {
      const OwnedRRefs& left = report.owned.front();
      complain(life->name + " reports " + std::to_string(left.objects) + " '" + left.type +
               "', held by " + (left.holders.empty() ? "nobody" : left.holders.front().node));
    }
    if (!report.used.empty()) complain(life->name + " reports what it does not hold");
    if (report.in_flight != 0) complain(life->name + " reports handles on their way");
  }
  ending_ = true;
}

}  // namespace batchrpc::test
