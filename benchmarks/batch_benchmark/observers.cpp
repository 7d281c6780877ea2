#include "batch_benchmark/observers.hpp"

#include <unistd.h>

#include <batchrpc/torch.hpp>
#include <chrono>
#include <csignal>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "common/seconds_between.hpp"

namespace batch_benchmark {

namespace rpc = batchrpc;

namespace {

using batchrpc_examples::duration_of;
using Clock = std::chrono::steady_clock;  // the same clock for all processes of a host

constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kUnderWay = std::chrono::milliseconds(20);  // until all observers have begun
constexpr const char* kCaller = "caller";

std::string observer_name(int index) { return "observer" + std::to_string(index); }

rpc::NodeOptions node_options(batchrpc_examples::TransportChoice transport) {
  rpc::NodeOptions options;
  options.transports =
      batchrpc_examples::transports_of(transport, {});  // meets where its sockets are
  options.join_timeout = kPatience;
  options.call_timeout = rpc::kNoTimeout;  // a sample may take any time
  return options;
}

rpc::Node start_caller(batchrpc_examples::TransportChoice transport) {
  rpc::NodeOptions options = node_options(transport);
  options.name = kCaller;
  return rpc::Node(std::move(options));
}

Clock::time_point time_of(std::int64_t ns) {
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(ns)));
}

std::int64_t ns_of(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

/// The functions that an observer's node exposes.
class Observer {
 public:
  explicit Observer(const rpc::Node& node) : node_(node) {}

  void ready() {}

  /// Calls until `end`. Returns the microseconds of each call between `begin` and `end`. If the
  /// machine stalled during all of that, returns the first call after it.
  rpc::Future<std::vector<float>> observe(std::string function, std::int64_t begin,
                                          std::int64_t end) {
    const Clock::time_point from = time_of(begin);
    const Clock::time_point to = time_of(end);
    const at::Tensor row = at::tensor({.01F, -.02F, .03F, -.04F});
    std::vector<float> us;
    Clock::time_point sent = Clock::now();
    while (sent < to || us.empty()) {
      const auto action = co_await node_.call<std::int64_t(at::Tensor)>(kCaller, function, row);
      if (action != 0 && action != 1) throw std::runtime_error("the reply is not an action");
      const Clock::time_point done = Clock::now();
      if (sent >= from && (done <= to || us.empty())) {
        us.push_back(std::chrono::duration<float, std::micro>(done - sent).count());
      }
      sent = done;
    }
    co_return us;
  }

 private:
  const rpc::Node& node_;
};

Observers::Observers(int count, const Run& run)
    : run_(run), node_(start_caller(run.options.transport)) {
  processes_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    processes_.emplace_back(batchrpc_examples::ProcessOptions{
        .arguments = observer_arguments(node_.address(), i, run.options.transport)});
  }
  for (const std::string& name : names(count))
    wait_until_ready(name);
}

Observers::~Observers() { batchrpc_examples::stop_all(processes_); }

std::vector<std::string> Observers::names(int count) const {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    names.push_back(observer_name(i));
  return names;
}

void Observers::check() {
  run_.interrupts.check();
  for (batchrpc_examples::ChildProcess& process : processes_) {
    if (const auto end = process.poll()) {
      throw std::runtime_error("an observer's process " + end->describe());
    }
  }
}

void Observers::wait_until_ready(const std::string& name) {
  auto joined = node_.wait_for_peer(name, kPatience);
  while (!joined.wait_for(kLook))
    check();
  std::move(joined).get();
  node_.call<&Observer::ready>(name).get();
}

void Observers::sleep_until(Clock::time_point time) {
  while (Clock::now() < time) {
    check();
    std::this_thread::sleep_until(std::min(time, Clock::now() + kLook));
  }
}

Sample Observers::measure(int count, const std::string& function,
                          const std::function<void()>& at_end) {
  const double seconds = run_.options.seconds;
  const Clock::time_point begin = Clock::now() + kUnderWay + duration_of(run_.options.warm_up);
  const Clock::time_point end = begin + duration_of(seconds);
  auto observed = rpc::when_all(
      node_.each(names(count)).call<&Observer::observe>(function, ns_of(begin), ns_of(end)));
  sleep_until(begin);
  const double cpu_before = cpu_seconds();
  sleep_until(end);
  const double cpu_passed = cpu_seconds() - cpu_before;
  at_end();
  while (!observed.wait_for(kLook))
    check();
  Sample sample;
  for (const std::vector<float>& us : std::move(observed).get())
    sample.us.insert(sample.us.end(), us.begin(), us.end());
  sample.rows_per_s = static_cast<double>(sample.us.size()) / seconds;
  sample.cpu_us = cpu_passed * 1e6 / static_cast<double>(sample.us.size());
  return sample;
}

int run_observer(const Options& options) {
  // Ctrl-C reaches the whole foreground group; the parent then ends this process.
  std::signal(SIGINT, SIG_IGN);
  rpc::NodeOptions node_settings = node_options(options.transport);
  node_settings.name = observer_name(options.index);
  node_settings.rank = -1;
  node_settings.join = options.join;
  const rpc::Node node(std::move(node_settings));
  Observer observer(node);
  node.expose<&Observer::ready>(observer);
  node.expose<&Observer::observe>(observer);
  while (true)
    ::pause();
}

}  // namespace batch_benchmark
