#include "policy_benchmark/clients.hpp"

#include <torch/torch.h>
#include <unistd.h>

#include <batchrpc/torch.hpp>
#include <csignal>
#include <thread>

#include "common/statistics.hpp"
#include "torch_settings/torch_settings.hpp"

namespace policy_benchmark {

namespace rpc = batchrpc;

namespace {

using Clock = std::chrono::steady_clock;  // the same clock for all processes of a host

constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kWarmUp = std::chrono::milliseconds(100);
constexpr const char* kServer = "server";
constexpr const char* kAct = "act";

std::string client_name(int index) { return "client" + std::to_string(index); }

rpc::NodeOptions node_options(std::string name) {
  rpc::NodeOptions options;
  options.name = std::move(name);
  options.transports = {rpc::unix_transport()};
  options.logging.level = rpc::LogLevel::error;  // clients end without a goodbye
  options.join_timeout = kPatience;
  options.call_timeout = rpc::kNoTimeout;  // a sample may take any time
  return options;
}

std::int64_t ns_of(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

/// The functions that a client's node exposes.
class Client {
 public:
  explicit Client(const rpc::Node& node) : node_(node) {}

  void ready() {}

  /// Runs `loops` closed loops until `end`. Returns the microseconds of each call that ended
  /// between `begin` and `end` on the steady clock.
  rpc::Future<std::vector<float>> call(std::int64_t begin, std::int64_t end, at::Tensor observation,
                                       int loops) {
    std::vector<rpc::Future<std::vector<float>>> running;
    for (int i = 0; i < loops; ++i)
      running.push_back(loop(begin, end, observation));
    std::vector<float> all;
    for (auto& one : running) {
      const std::vector<float> us = co_await std::move(one);
      all.insert(all.end(), us.begin(), us.end());
    }
    co_return all;
  }

 private:
  rpc::Future<std::vector<float>> loop(std::int64_t begin, std::int64_t end,
                                       at::Tensor observation) {
    std::vector<float> us;
    std::int64_t sent = ns_of(Clock::now());
    while (sent < end) {
      const auto reply =
          co_await node_.call<rpc::PolicyReply(at::Tensor)>(kServer, kAct, observation);
      if (reply.outputs.size() != 2) throw std::runtime_error("the reply is not a policy's reply");
      const std::int64_t done = ns_of(Clock::now());
      if (done > begin && done <= end) us.push_back(static_cast<float>(done - sent) * 1e-3F);
      sent = done;
    }
    co_return us;
  }

  const rpc::Node& node_;
};

Clients::Clients(const Run& run) : run_(run), node_(node_options(kServer)) {
  for (int i = 0; i < run.options.clients; ++i) {
    processes_.emplace_back(
        batchrpc_examples::ProcessOptions{.arguments = client_arguments(node_.address(), i)});
  }
  for (int i = 0; i < run.options.clients; ++i)
    wait_until_ready(client_name(i));
}

Clients::~Clients() { batchrpc_examples::stop_all(processes_); }

void Clients::check() {
  run_.interrupts.check();
  for (batchrpc_examples::ChildProcess& process : processes_) {
    if (const auto end = process.poll()) {
      throw std::runtime_error("a client's process " + end->describe());
    }
  }
}

void Clients::wait_until_ready(const std::string& name) {
  auto joined = node_.wait_for_peer(name, kPatience);
  while (!joined.wait_for(kLook))
    check();
  std::move(joined).get();
  node_.call<&Client::ready>(name).get();
}

Served Clients::measure(const std::shared_ptr<rpc::Policy>& policy, int batch) {
  const auto rows = static_cast<std::size_t>(batch);
  const auto act = rpc::make_policy_batcher(policy, {.max_size = rows, .min_size = rows});
  node_.expose(kAct, act);
  const at::Tensor observation = some_observations(policy->info(), 1)[0];
  const Clock::time_point begin = Clock::now() + kWarmUp;
  const Clock::time_point end = begin + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(run_.options.seconds));
  std::vector<rpc::Future<std::vector<float>>> called;
  const int count = run_.options.clients;
  for (int i = 0; i < count; ++i) {
    const int loops = 2 * batch * (i + 1) / count - 2 * batch * i / count;
    called.push_back(
        node_.call<&Client::call>(client_name(i), ns_of(begin), ns_of(end), observation, loops));
  }
  const auto look_until = [&](auto ready) {
    while (!ready())
      check();
  };
  look_until([&] {
    std::this_thread::sleep_until(std::min(end, Clock::now() + kLook));
    return Clock::now() >= end;
  });
  rpc::BatchOptions last = act.options();  // stops waiting for calls that no longer come
  last.min_size = 1;
  act.set_options(std::move(last));
  auto all = rpc::when_all(std::move(called));
  look_until([&] { return all.wait_for(kLook); });
  std::vector<double> us;
  for (const std::vector<float>& some : std::move(all).get())
    us.insert(us.end(), some.begin(), some.end());
  node_.unexpose(kAct);
  if (us.empty()) throw std::runtime_error("no call ended within --seconds: give more");
  const auto percentiles = batchrpc_examples::percentiles(us, {50, 99});
  return {.rows_per_s = static_cast<double>(us.size()) / run_.options.seconds,
          .p50_us = percentiles[0],
          .p99_us = percentiles[1],
          .mean_batch = act.statistics().sizes.mean()};
}

int run_client(const Options& options) {
  // Ctrl-C reaches the whole foreground group; the parent then ends this process.
  std::signal(SIGINT, SIG_IGN);
  batchrpc_examples::use_torch_threads(1);
  rpc::NodeOptions settings = node_options(client_name(options.index));
  settings.rank = -1;
  settings.join = options.join;
  const rpc::Node node(std::move(settings));
  Client client(node);
  node.expose<&Client::ready>(client);
  node.expose<&Client::call>(client);
  while (true)
    ::pause();
}

}  // namespace policy_benchmark
