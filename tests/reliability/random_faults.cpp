#include <algorithm>
#include <utility>

#include "reliability/host_name.hpp"
#include "reliability/random_program.hpp"

// What goes wrong in the world of a random program.
namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

// Shorter than a peer may be silent before it counts as dead, with time for the ping.
constexpr Duration kHarmless = 2500ms;

}  // namespace

std::size_t RandomProgram::some_size() {
  const std::size_t size =
      1 + below(one_in(3) ? largest_ : std::min<std::size_t>(largest_, 40'000));
  return std::max<std::size_t>(size, 1);
}

LinkOptions RandomProgram::some_link() {
  LinkOptions link{.latency = some_time(5ms), .jitter = some_time(3ms)};
  if (one_in(3)) link.jitter_shape = JitterShape::exponential;
  if (one_in(4)) link.bandwidth = 20'000'000 + below(50'000'000);
  if (narrow_) {
    link.latency = some_time(1ms);
    link.jitter = some_time(1ms);
    link.capacity = 500 + below(4000);
    if (one_in(2)) link.max_chunk = 20 + below(3000);
  }
  // A chunk of a large payload never gets over a connection that breaks before its end.
  const bool breaks = weather_ == Weather::cuts || (weather_ == Weather::storm && one_in(3));
  if (breaks && largest_ <= 40'000 && one_in(2)) link.break_every = 100'000 + below(200'000);
  return link;
}

void RandomProgram::plan_faults() {
  for (int a = 0; a < hosts_; ++a) {
    for (int b = 0; b < a; ++b)
      world_.network().set_link(host_name(a), host_name(b), some_link());
  }
  const auto plan = [this](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      world_.after(some_time(3s), [this] { fault(); });
  };
  switch (weather_) {
    case Weather::calm:
      return;
    case Weather::stall:
      return plan(1);
    case Weather::cuts:
      return plan(1 + below(8));
    case Weather::storm:
      return plan(1 + below(5));
  }
}

void RandomProgram::fault() {
  if (clean_) return;
  const int a = static_cast<int>(below(static_cast<std::uint64_t>(hosts_)));
  const int b = (a + 1 + static_cast<int>(below(static_cast<std::uint64_t>(hosts_ - 1)))) % hosts_;
  if (weather_ == Weather::cuts) return world_.network().cut(host_name(a), host_name(b));
  const Duration time = some_time(weather_ == Weather::stall ? kHarmless : Duration(9s));
  const std::uint64_t what = below(weather_ == Weather::stall ? 2 : 5);
  if (what == 0) return part(a, b, time);
  if (what == 1) return pause(a, time);
  if (what == 2) return world_.network().cut(host_name(a), host_name(b));
  if (a != 0) kill(a);
}

void RandomProgram::part(int a, int b, Duration time) {
  if (one_in(2)) {
    world_.network().partition(host_name(a), host_name(b));
  } else {
    world_.network().partition_one_way(host_name(a), host_name(b));
  }
  world_.after(time, [this, a, b] { world_.network().heal(host_name(a), host_name(b)); });
}

void RandomProgram::pause(int host, Duration time) {
  const auto life = lives_.at(static_cast<std::size_t>(host));
  if (life->dead || life->paused) return;
  life->paused = true;
  world_.pause(life->name);
  world_.after(time, [this, life] {
    if (life->dead || !std::exchange(life->paused, false)) return;
    world_.resume(life->name);
  });
}

// And starts it again, some time after.
void RandomProgram::kill(int host) {
  auto& place = lives_.at(static_cast<std::size_t>(host));
  if (place->dead || !place->node) return;
  place->dead = true;
  world_.kill(place->name);
  ledger_.caller_died(host);
  dead_.push_back(place);
  world_.after(some_time(3s), [this, host] {
    auto life = begin_life(host);
    lives_.at(static_cast<std::size_t>(host)) = life;
    Node::start(options_of(*life)).then([this, life](Result<Node> node) {
      if (!node) return ledger_.complain(life->name + " could not join: " + node.message());
      if (!life->dead) live(life, std::move(node).value());
    });
  });
}

// All that there is: links, too, which connections have for life.
void RandomProgram::heal() {
  clean_ = true;
  for (int a = 0; a < hosts_; ++a) {
    const auto life = lives_.at(static_cast<std::size_t>(a));
    if (!life->dead && std::exchange(life->paused, false)) world_.resume(life->name);
    for (int b = 0; b < a; ++b) {
      world_.network().set_link(host_name(a), host_name(b), {.latency = 1ms});
      world_.network().heal(host_name(a), host_name(b));
      if (weather_ == Weather::cuts || weather_ == Weather::storm) {
        world_.network().cut(host_name(a), host_name(b));
      }
    }
  }
}

}  // namespace batchrpc::test
