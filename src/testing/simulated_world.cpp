#include "batchrpc/testing/simulated_world.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "transport/program_thread.hpp"

namespace batchrpc {
namespace {

// What happened, in words, with the time. Nodes that outlive the world still log.
struct Chronicle {
  void write(std::string_view event) const {
    const auto clock = loop.lock();
    if (out == nullptr || !clock) return;
    const auto time = std::chrono::nanoseconds(clock->now() - start).count();
    constexpr std::int64_t kSecond = 1'000'000'000;
    std::ostringstream line;
    line << time / kSecond << '.' << std::setw(9) << std::setfill('0') << time % kSecond << ' '
         << event << '\n';
    *out << line.str();
  }

  std::weak_ptr<VirtualLoop> loop;
  TimePoint start;
  std::ostream* out = nullptr;
};

// One life of a host.
struct Life {
  std::shared_ptr<VirtualHost> loop;
  bool over = false;
};

struct Program {
  std::string host;
  std::shared_ptr<Life> life;
  std::shared_ptr<detail::ProgramThread> thread;
};

// A number of its own for each use of the seed.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t use) {
  return std::mt19937_64(seed * 0x9e3779b97f4a7c15 + use)();
}

}  // namespace

struct SimulatedWorld::State {
  explicit State(std::uint64_t of_all)
      : seed(of_all),
        loop(std::make_shared<VirtualLoop>(seed)),
        network(InprocNetwork::make(mixed(seed, 1))),
        scheduling(std::make_shared<std::mt19937_64>(mixed(seed, 2))),
        chronicle(std::make_shared<Chronicle>(Chronicle{loop, loop->now()})) {}

  // The host's life; a new one if that is over.
  const std::shared_ptr<Life>& living(const std::string& host) {
    std::shared_ptr<Life>& life = hosts[host];
    if (!life || life->over) {
      if (life) chronicle->write("start " + host + " again");
      life = std::make_shared<Life>(Life{VirtualHost::make(loop, clocks[host]), false});
      loops.push_back(life->loop);
    }
    return life;
  }

  // The latest life of a host that has been named. A misspelt one would have nothing happen, and
  // the test pass.
  Life& latest(const std::string& host) const {
    const auto found = hosts.find(host);
    if (found != hosts.end()) return *found->second;
    std::string names;
    for (const auto& [name, life] : hosts)
      names += (names.empty() ? "" : ", ") + name;
    throw InvalidArgument(
        "this world has no host '" + host +
        "' (options() and spawn() add hosts); its hosts are: " + (names.empty() ? "none" : names));
  }

  void end(const std::string& host) const {
    Life& life = latest(host);
    life.over = true;
    life.loop->pause();
  }

  const std::uint64_t seed;
  const std::shared_ptr<VirtualLoop> loop;
  const std::shared_ptr<InprocNetwork> network;
  const std::shared_ptr<std::mt19937_64> scheduling;
  const std::shared_ptr<Chronicle> chronicle;
  std::uint64_t seeds = 16;  // uses of the seed
  std::string root;
  std::map<std::string, std::shared_ptr<Life>> hosts;
  std::vector<std::weak_ptr<VirtualHost>> loops;  // of all lives
  std::map<std::string, ClockOptions> clocks;
  std::vector<Program> programs;
};

SimulatedWorld::SimulatedWorld(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}

SimulatedWorld::~SimulatedWorld() {
  state_->network->set_trace(nullptr);
  state_->chronicle->out = nullptr;
  // Their last words reach nobody.
  for (auto& [name, life] : state_->hosts) {
    life->over = true;
    life->loop->pause();
  }
  for (const Program& program : state_->programs)
    program.thread->end();
  // Tasks of a killed host keep its node alive, and the node keeps its loop alive.
  for (const auto& weak : state_->loops) {
    if (const auto loop = weak.lock()) loop->drop_tasks();
  }
  state_->loop->drop_tasks();
}

NodeOptions SimulatedWorld::options(const std::string& host, NodeOptions others) {
  if (!others.name.empty() && others.name != host) {
    throw InvalidArgument("a node of a SimulatedWorld has the name of its host: '" + others.name +
                          "' needs a host of its own, options(\"" + others.name + "\")");
  }
  const auto life = state_->living(host);
  others.name = host;
  if (others.rank == 0 && others.world_size == 0) {
    if (state_->root.empty()) state_->root = host;
    if (host != state_->root) others.rank = -1;
  }
  if (others.join.empty()) others.join = "inproc://world";
  others.simulation.loop = life->loop;
  others.transports = {inproc_transport(state_->network)};
  if (others.simulation.seed == 0) others.simulation.seed = mixed(state_->seed, ++state_->seeds);
  others.logging.sink = [life = std::weak_ptr(life), chronicle = state_->chronicle,
                         sink = std::move(others.logging.sink)](LogLevel level,
                                                                std::string_view line) {
    const auto living = life.lock();
    if (!living || living->over) return;
    chronicle->write("log " + std::string(line));
    if (sink) {
      sink(level, line);
    } else if (chronicle->out == nullptr) {
      std::cerr << line << '\n';
    }
  };
  return others;
}

void SimulatedWorld::spawn(const std::string& host, std::function<void()> program) {
  const auto life = state_->living(host);
  std::erase_if(state_->programs, [](const Program& each) { return each.thread->has_ended(); });
  auto delay = [random = state_->scheduling] {
    return Duration(static_cast<Duration::rep>((*random)() % 1000));
  };
  auto thread = std::make_shared<detail::ProgramThread>(state_->loop, life->loop, std::move(delay),
                                                        std::move(program));
  thread->wake();
  state_->programs.push_back({host, life, std::move(thread)});
}

void SimulatedWorld::run(Duration at_most) {
  const auto is_running = [](const Program& program) {
    return !program.life->over && !program.thread->has_ended();
  };
  const auto all_returned = [&] {
    return std::none_of(state_->programs.begin(), state_->programs.end(), is_running);
  };
  if (run_until(all_returned, at_most)) return;
  std::string names;
  for (const Program& program : state_->programs) {
    if (is_running(program)) names += (names.empty() ? "" : ", ") + program.host;
  }
  throw VirtualDeadlock("the programs of these hosts have not returned and are still waiting: " +
                        names);
}

void SimulatedWorld::run_for(Duration duration) { state_->loop->run_for(duration); }

bool SimulatedWorld::run_until(const std::function<bool()>& done, Duration at_most) {
  return state_->loop->run_until(done, at_most);
}

void SimulatedWorld::after(Duration delay, Task task) {
  state_->loop->schedule(state_->loop->now() + delay, std::move(task));
}

Duration SimulatedWorld::time() const { return state_->loop->now() - state_->chronicle->start; }

InprocNetwork& SimulatedWorld::network() const noexcept { return *state_->network; }

void SimulatedWorld::set_clock(const std::string& host, const ClockOptions& clock) {
  state_->clocks[host] = clock;
}

void SimulatedWorld::pause(const std::string& host) {
  const Life& life = state_->latest(host);
  if (life.over) return;
  state_->chronicle->write("pause " + host);
  life.loop->pause();
}

void SimulatedWorld::resume(const std::string& host) {
  const Life& life = state_->latest(host);
  if (life.over) return;
  state_->chronicle->write("resume " + host);
  life.loop->resume();
}

void SimulatedWorld::kill(const std::string& host) {
  state_->end(host);
  state_->network->kill(host);
  state_->network->power_off(host);
}

void SimulatedWorld::power_off(const std::string& host) {
  state_->end(host);
  state_->network->power_off(host);
}

std::uint64_t SimulatedWorld::seed() const noexcept { return state_->seed; }
std::mt19937_64& SimulatedWorld::random() noexcept { return state_->loop->random(); }
const std::shared_ptr<VirtualLoop>& SimulatedWorld::loop() const noexcept { return state_->loop; }

void SimulatedWorld::trace(std::ostream& out) {
  state_->chronicle->out = &out;
  state_->network->set_trace(
      [chronicle = std::weak_ptr(state_->chronicle)](std::string_view event) {
        if (const auto living = chronicle.lock()) living->write(event);
      });
}

}  // namespace batchrpc
