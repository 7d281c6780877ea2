#include "soak/conductor.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "common/free_port.hpp"

namespace soak {

namespace {

using namespace std::chrono_literals;

constexpr auto kStep = 10ms;
constexpr auto kPatience = 90s;  // for a node that is to join or to answer
constexpr auto kSettling = 6s;   // after the last fault
constexpr auto kLongStop = 8s;   // longer than `dead_after`
constexpr auto kEndOfRun = 12s;  // for the last measurement
constexpr auto kBetweenReports = 300s;
constexpr double kMeanPause = 0.7;  // seconds between two faults
constexpr int kMostDisturbed = 4;   // observers at the same time
constexpr int kMostConnections =
    2 * (static_cast<int>(kObservers) + 1);  // both sides may have made one
// Variations between two moments: partly used pages, and data that waits or is being sent. In a
// short run also memory that a node allocates only once.
struct Noise {
  std::int64_t memory;
  std::int64_t allocated;
};
constexpr Noise kNoise{.memory = 6 << 20, .allocated = 2 << 20};
constexpr Noise kNoiseInTheEnd{.memory = 1 << 20, .allocated = 1 << 18};
constexpr auto kLongRun = 20min;
constexpr auto kLeasesEnd =
    45s;  // lease of 30 s of nodes that were out of reach, plus the time to notice
constexpr std::uint64_t kMostShown = 20;

double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

Conductor::Conductor(const Options& options) : options_(options), random_(options.seed) {
  std::string folder = std::filesystem::temp_directory_path() / "batchrpc-soak-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), folder);
  }
  folder_ = folder;
  const std::string address = "tcp://127.0.0.1:" + std::to_string(batchrpc_examples::free_port());
  const auto add = [&](Role role, std::uint32_t index) {
    Child& child = children_.emplace_back();
    child.options = options;
    child.options.role = role;
    child.options.index = index;
    child.options.address = address;
    child.options.folder = folder_;
    child.name = name_of(role, index);
  };
  add(Role::root, 0);
  add(Role::agent, 0);
  for (std::uint32_t i = 0; i < kObservers; ++i)
    add(Role::observer, i);
}

Conductor::~Conductor() {
  for (Child& child : children_) {
    if (child.process) child.process->signal(SIGKILL);  // it may be stopped
  }
  children_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool Conductor::run() {
  start_all();
  const auto end = begin_ + std::chrono::seconds(options_.seconds);
  disturb_until(begin_ + std::chrono::seconds(options_.seconds) / 4);
  const Measured before = measure();
  Measured after = before;
  do {
    disturb_until(std::min(Clock::now() + kBetweenReports, end - kEndOfRun));
    after = measure();
    if (options_.seconds * 1s > kBetweenReports) summarize(before, after);
  } while (Clock::now() + kEndOfRun < end);
  compare(before, after);
  end_all();
  summarize(before, after);
  return failures_ == 0;
}

void Conductor::start_all() {
  for (Child& child : children_) {
    start(child);
    if (child.options.role == Role::observer) continue;
    if (!wait_until(kPatience, [&] { return child.ready; })) {
      throw std::runtime_error(child.name + " did not start");
    }
  }
  if (!wait_until(kPatience, [this] {
        return std::all_of(children_.begin(), children_.end(),
                           [](const Child& child) { return child.ready; });
      })) {
    throw std::runtime_error("observers did not join");
  }
  started_ = true;
  notify_all("resume");
}

void Conductor::notify_all(const std::string& command) const {
  for (const Child& child : children_)
    (void)child.link.try_send(command);
}

void Conductor::start(Child& child) {
  child.start_at.reset();
  auto [ours, theirs] = Link::pair();
  child.link = std::move(ours);
  child.options.link = theirs.file();
  child.idle = child.ready = false;
  theirs.set_inherited(true);
  child.process.emplace(
      batchrpc_examples::ProcessOptions{.arguments = child_arguments(child.options)});
}

void Conductor::kill(Child& child) {
  faults_.begin(FaultKind::kill, child.name);
  child.process->signal(SIGKILL);
  child.process->wait();
  hear(child);  // its last messages
  child.process.reset();
  child.ready = false;
  ++child.options.life;
  child.start_at = Clock::now() + std::chrono::milliseconds(random(2000));
}

void Conductor::stop(Child& child, std::chrono::milliseconds time) {
  faults_.begin(time >= kLongStop ? FaultKind::long_stop : FaultKind::stop, child.name);
  child.process->signal(SIGSTOP);
  child.continue_at = Clock::now() + time;
}

void Conductor::cut(Child& child) {
  faults_.begin(FaultKind::cut, child.name);
  (void)child.link.try_send("cut " + std::to_string(random(1U << 20)));
}

void Conductor::disturb() {
  const auto short_stop = [this] { return 500ms + std::chrono::milliseconds(random(1500)); };
  const auto disturbed = std::count_if(children_.begin(), children_.end(),
                                       [](const Child& child) { return !child.undisturbed(); });
  const std::uint64_t kind = random(100);
  Child& one = observer(random(kObservers));
  const bool may = one.undisturbed() && disturbed < kMostDisturbed;
  if (kind < 25) {
    if (may) kill(one);
  } else if (kind < 50) {
    if (may) stop(one, short_stop());
  } else if (kind < 53) {
    if (may) stop(one, kLongStop);
  } else if (kind < 57) {
    if (agent().undisturbed()) stop(agent(), short_stop());
  } else if (kind < 59) {
    if (root().undisturbed()) kill(root());
  } else {
    Child& cut_off = kind < 80 ? agent() : kind < 97 ? one : root();
    if (cut_off.undisturbed()) cut(cut_off);
  }
}

void Conductor::disturb_until(Clock::time_point end) {
  std::exponential_distribution<double> pause(1 / kMeanPause);
  auto next = Clock::now();
  while (Clock::now() < end) {
    step();
    if (options_.calm || Clock::now() < next) continue;
    disturb();
    next = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(pause(random_)));
  }
}

Measured Conductor::measure() {
  const auto all = [this](auto condition) {
    return [this, condition] { return std::all_of(children_.begin(), children_.end(), condition); };
  };
  if (!wait_until(kPatience, all([](const Child& child) { return child.undisturbed(); }))) {
    throw std::runtime_error("a disturbed process did not come back");
  }
  wait_until(kSettling, [] { return false; });
  for (Child& child : children_)
    child.idle = false;
  notify_all("pause");
  if (!wait_until(kPatience, all([](const Child& child) { return child.idle; }))) {
    for (const Child& child : children_) {
      if (!child.idle) failed("calls of " + child.name + " did not end");
    }
  }
  // No node refers to an object now. References of killed nodes are released when their lease ends.
  const auto leases_end = Clock::now() + kLeasesEnd;
  do {
    wait_until(1500ms, [] { return false; });
    measured_.reset();
    (void)agent().link.try_send("measure");
    if (!wait_until(kPatience, [this] { return measured_.has_value(); })) {
      throw std::runtime_error("the agent did not answer");
    }
  } while (measured_->objects > 0 && Clock::now() < leases_end);
  if (measured_->objects > 0) failed("objects are left although no node refers to them");
  notify_all("resume");
  return *measured_;
}

void Conductor::end_all() {
  notify_all("pause");
  wait_until(1s, [] { return false; });
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    child->ending = true;
    (void)child->link.try_send("end");
    if (!wait_until(kPatience, [&] { return child->process->poll().has_value(); })) {
      failed(child->name + " did not end");
    } else if (const auto exit = child->process->wait(); !exit.success()) {
      failed(child->name + ", when asked to end, " + exit.describe());
    }
    hear(*child);
  }
}

void Conductor::compare(const Measured& before, const Measured& after) {
  // Under a sanitizer freed memory is kept for a while, and its size is not known.
  const bool is_known = before.allocated > 0;
  const Noise noise = options_.seconds * 1s < kLongRun ? kNoise : kNoiseInTheEnd;
  if (is_known && after.memory > before.memory + before.memory / 100 + noise.memory) {
    failed("the agent's memory grew");
  }
  if (is_known && after.allocated > before.allocated + before.allocated / 100 + noise.allocated) {
    failed("the agent allocated more than it freed");
  }
  if (after.files > before.files) failed("the agent has more file descriptors than before");
  if (after.connections > kMostConnections) failed("the agent has too many connections");
}

void Conductor::summarize(const Measured& before, const Measured& after) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_);
  std::cout << std::fixed << std::setprecision(2) << "soak: " << seconds.count() << " s, seed "
            << options_.seed << ": " << calls_ << " calls, " << faults_.count(FaultKind::kill)
            << " kills, " << faults_.count(FaultKind::stop) << " stops and "
            << faults_.count(FaultKind::long_stop) << " long ones, "
            << faults_.count(FaultKind::cut) << " cuts, " << errors_
            << " calls failed by these, failures: " << failures_ << "; the agent's memory "
            << mebibytes(before.memory) << " -> " << mebibytes(after.memory)
            << " MiB, of it allocated " << mebibytes(before.allocated) << " -> "
            << mebibytes(after.allocated) << " MiB, connections " << before.connections << " -> "
            << after.connections << ", other descriptors " << before.files << " -> " << after.files
            << ", objects " << before.objects << " -> " << after.objects << std::endl;
}

void Conductor::step() {
  interrupt_.check();
  std::this_thread::sleep_for(kStep);
  for (Child& child : children_) {
    if (child.process) hear(child);
    if (child.start_at && Clock::now() >= *child.start_at) start(child);
    if (child.continue_at && Clock::now() >= *child.continue_at) {
      child.process->signal(SIGCONT);
      child.continue_at.reset();
      faults_.end(child.name);
    }
    if (child.process && !child.ending && child.process->poll()) {
      hear(child);
      throw std::runtime_error(child.name + " " + child.process->wait().describe());
    }
  }
}

template <class Condition>
bool Conductor::wait_until(std::chrono::milliseconds patience, Condition condition) {
  const auto give_up = Clock::now() + patience;
  while (!condition()) {
    if (Clock::now() > give_up) return false;
    step();
  }
  return true;
}

void Conductor::hear(Child& child) {
  bool ended = false;
  while (const auto text = child.link.receive(ended)) {
    std::istringstream words(*text);
    std::string verb;
    words >> verb;
    if (verb == "ready") {
      child.ready = true;
      if (started_) (void)child.link.try_send("resume");
      faults_.end(child.name);
    } else if (verb == "idle") {
      child.idle = true;
    } else if (verb == "calls") {
      std::uint64_t count = 0;
      words >> count;
      calls_ += count;
    } else if (verb == "measured") {
      Measured measured;
      words >> measured.memory >> measured.allocated >> measured.connections >> measured.files >>
          measured.objects;
      measured_ = measured;
    } else if (verb == "error") {
      hear_error(child, *text);
    } else if (verb == "failed") {
      failed(child.name + ": " + text->substr(7));
    }
  }
}

void Conductor::hear_error(const Child& child, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  int code = 0;
  std::int64_t nanoseconds = 0;
  bool with_handle = false;
  bool involves_others = false;
  std::string peer;
  words >> verb >> code >> nanoseconds >> with_handle >> involves_others >> peer;
  std::string text;
  std::getline(words, text, '\0');
  const Clock::time_point time{std::chrono::nanoseconds(nanoseconds)};
  std::vector<std::string> names;
  if (!involves_others) names = {child.name, peer};
  ++errors_;
  if (faults_.explain(static_cast<batchrpc::ErrorCode>(code), with_handle, time, names)) return;
  failed("no fault explains that a call of " + child.name + " on " + peer + " failed:" + text +
         faults_.describe(time, names));
}

void Conductor::failed(const std::string& what) {
  ++failures_;
  if (failures_ > kMostShown) return;
  std::cerr << "soak: FAILED (seed " << options_.seed << ", at "
            << std::chrono::duration<double>(Clock::now().time_since_epoch()).count() << ", after "
            << std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_).count()
            << " s): " << what << std::endl;
}

}  // namespace soak
