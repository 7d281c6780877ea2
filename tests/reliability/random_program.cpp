#include "reliability/random_program.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>

#include "reliability/host_name.hpp"

namespace batchrpc::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kActing = 3s;
constexpr std::size_t kPool = 1536 * 1024;  // more than is sent before it is asked for
constexpr std::size_t kOffsets = 4096;

// All payloads are parts of it, so that they cost nothing to make and to compare.
const std::vector<std::byte>& pool() {
  static const std::vector<std::byte> kBytes = [] {
    std::vector<std::byte> bytes(kPool + kOffsets);
    std::mt19937_64 random(1);
    for (std::byte& byte : bytes)
      byte = static_cast<std::byte>(random());
    return bytes;
  }();
  return kBytes;
}

std::size_t offset_of(std::uint64_t id) { return id * 8 % kOffsets; }

struct Counted {
  Counted() { ++Payload::alive; }
  ~Counted() { --Payload::alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

Weather weather_of(std::uint64_t seed) {
  constexpr std::array kAll{Weather::calm, Weather::storm, Weather::cuts, Weather::storm,
                            Weather::stall};
  return kAll.at(seed % kAll.size());
}

}  // namespace

Bytes Payload::make(std::uint64_t id, std::size_t size) {
  return {std::make_shared<Counted>(), std::span(pool()).subspan(offset_of(id), size)};
}

bool Payload::is_of(std::uint64_t id, const Bytes& bytes) {
  return bytes.size() == 0 ||
         std::memcmp(bytes.data(), pool().data() + offset_of(id), bytes.size()) == 0;
}

RandomProgram::RandomProgram(std::uint64_t seed)
    : weather_(weather_of(seed)), random_(seed), world_(seed), ledger_(world_, weather_) {
  if (std::getenv("BATCHRPC_TRACE") != nullptr) world_.trace(std::cerr);  // NOLINT: one thread
  reliability::Diary::ledger = &ledger_;
  reliability::Diary::alive = 0;
  Payload::alive = 0;
  hosts_ = 3 + static_cast<int>(below(2));
  for (int host = 0; host < hosts_; ++host) {
    has_limits_.at(static_cast<std::size_t>(host)) = one_in(3);
    if (one_in(4)) {
      world_.set_clock(host_name(host),
                       {.offset = some_time(1h), .drift = one_in(2) ? 1e-4 : -1e-4});
    }
  }
}

// What is left of a program that has thrown.
RandomProgram::~RandomProgram() {
  handles_.clear();
  for (auto* const all : {&lives_, &dead_}) {
    for (const auto& life : *all) {
      life->held.clear();
      life->promised.clear();
      life->node.reset();
    }
  }
  reliability::Diary::ledger = nullptr;
}

NodeOptions RandomProgram::options_of(Life& life) {
  NodeOptions options{.shutdown_timeout = Duration::zero(), .logging = {.sink = [](auto, auto) {}}};
  options.call_timeout = 10s;
  if (std::getenv("BATCHRPC_TRACE") != nullptr) options.logging.level = LogLevel::debug;  // NOLINT
  if (life.limited) {
    options.limits.calls = {.accepted = 2 + below(12),
                            .running = 1 + below(3),
                            .order = one_in(2) ? QueueOrder::fifo : QueueOrder::earliest_deadline};
  }
  options = world_.options(life.name, std::move(options));
  life.loop = options.simulation.loop;
  return options;
}

std::shared_ptr<RandomProgram::Life> RandomProgram::begin_life(int host) {
  auto life = std::make_shared<Life>();
  life->host = host;
  life->name = host_name(host);
  life->limited = has_limits_.at(static_cast<std::size_t>(host));
  return life;
}

void RandomProgram::live(const std::shared_ptr<Life>& life, Node node) {
  life->node.emplace(std::move(node));
  expose_all(*life);
}

void RandomProgram::run() {
  narrow_ = one_in(3);
  largest_ = narrow_ ? 2000 : one_in(3) ? (one_in(4) ? kPool : kPool / 2) : 40'000;
  world_.network().set_link({.latency = some_time(2ms), .jitter = some_time(1ms)});
  for (int host = 0; host < hosts_; ++host) {
    const auto life = lives_.emplace_back(begin_life(host));
    live(life, Node(options_of(*life)));
  }
  world_.run_for(50ms);  // until all have heard of all
  const int actions = 20 + static_cast<int>(below(30));
  plan_faults();
  // In bursts, which share connections and rounds.
  for (int i = 0; i < actions;) {
    const Duration when = some_time(kActing);
    const int burst = 1 + static_cast<int>(below(6));
    for (int k = 0; k < burst && i < actions; ++k, ++i)
      world_.after(when, [this] { act(); });
  }
  world_.run_for(kActing);
  if (weather_ == Weather::storm) world_.run_for(some_time(9s));
  heal();
  if (!world_.run_until([this] { return ledger_.all_ended(); }, 60s)) {
    ledger_.complain("calls have not ended a minute after the last fault");
  }
  if (weather_ == Weather::storm) {
    world_.run_for(15s);
    probe(15s);
  }
  world_.run_for(2500ms);
  probe(100ms);
  end();
}

// Once all is well, calls succeed soon, between any two.
void RandomProgram::probe(Duration within) {
  const Duration start = world_.time();
  std::vector<std::pair<std::string, Future<int>>> calls;
  for (const auto& from : lives_) {
    if (!from->node) {
      ledger_.complain(from->name + " could not join again");
      continue;
    }
    for (const auto& to : lives_) {
      if (to == from || !to->node) continue;
      calls.emplace_back(
          from->name + ">" + to->name,
          from->node->peer(to->name).with({.timeout = within}).call<int(int)>("probe", 1));
    }
  }
  const auto done = [&] {
    return std::all_of(calls.begin(), calls.end(),
                       [](const auto& call) { return call.second.ready(); });
  };
  (void)world_.run_until(done, within + 1s);
  for (auto& [what, call] : calls) {
    if (!call.ready()) {
      ledger_.complain("at the end a call " + what + " did not end");
      continue;
    }
    try {
      if (call.get() != 2) ledger_.complain("a wrong answer at the end");
    } catch (const Error& error) {
      ledger_.complain("at the end, with all well since " + std::to_string(start / 1ms) +
                       " ms, a call " + what + " failed: " + error.what());
    }
  }
}

// Nothing is left: of handles, of payloads, of calls, of connections.
/// Each call ends in one counter: so says the node, by other means, of those under way.
void RandomProgram::check_counts(const Life& life) {
  const NodeMetrics metrics = life.node->metrics();
  const auto check = [&](const CallMetrics& calls, std::size_t under_way, const std::string& what) {
    if (calls.calls == calls.ok + calls.errors.total() + under_way) return;
    ledger_.complain(life.name + " counts " + std::to_string(calls.calls) + " calls " + what +
                     ": " + std::to_string(calls.ok) + " went well, " +
                     std::to_string(calls.errors.total()) + " failed, " +
                     std::to_string(under_way) + " are under way");
  };
  check(metrics.made, metrics.pending, "made");
  check(metrics.answered, metrics.answering, "answered");
}

void RandomProgram::end() {
  handles_.clear();
  for (const auto& life : lives_)
    life->held.clear();
  world_.run_for(weather_ == Weather::storm ? 40s : Duration(2500ms));  // leases run out
  for (const auto& life : dead_) {
    life->held.clear();
    life->promised.clear();
    life->node.reset();
  }
  if (reliability::Diary::alive != 0) {
    ledger_.complain(std::to_string(reliability::Diary::alive) + " objects without handles live");
  }
  if (Payload::alive != 0) {
    ledger_.complain(std::to_string(Payload::alive) + " payloads are kept, and no call is left");
  }
  for (const auto& life : lives_) {
    if (life->node) check_counts(*life);
  }
  std::shuffle(lives_.begin(), lives_.end(), random_);
  for (const auto& life : lives_) {
    if (!life->node) continue;
    for (const std::string& left : life->node->shutdown(Duration::zero()))
      ledger_.complain(life->name + " ends with calls under way: " + left);
    if (!life->promised.empty()) ledger_.complain("a promise that nobody has kept");
    life->node.reset();
  }
  world_.run_for(11s);  // twice dead_after: there are timers that nobody takes back
  if (dead_.empty()) {  // whose loops stand still
    if (reliability::Diary::alive != 0) ledger_.complain("objects that outlive their nodes");
    if (world_.network().connections() != 0) ledger_.complain("connections without nodes");
    if (world_.loop()->pending() != 0) ledger_.complain("timers without nodes");
  }
  ledger_.close();
}

}  // namespace batchrpc::test
