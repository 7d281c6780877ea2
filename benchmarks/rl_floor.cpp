// The time that bare sockets need for the RL throughput benchmark. It is the floor of
// `rl_benchmark`: the same processes, policy and states, with no library between them. A request is
// the state's bytes, a reply 8 bytes. Observers block in recv (or first poll for a while with
// sched_yield), the agent in epoll_wait. States are received directly into their batch.
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <torch/torch.h>

#include <CLI/App.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/command_line.hpp"
#include "common/machine.hpp"
#include "common/option_checks.hpp"
#include "common/process.hpp"
#include "common/sockets.hpp"
#include "common/statistics.hpp"
#include "rl_benchmark/policy.hpp"
#include "torch_settings/torch_settings.hpp"

namespace {

using namespace batchrpc_benchmarks;
using batchrpc_examples::ChildProcess;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kElements = 10 * 20 * 10;
constexpr std::size_t kStateBytes = kElements * sizeof(float);

struct Options {
  int world_size = 10;
  bool batch = true;
  int episodes = 10;
  int steps = 100;
  SocketKind kind = SocketKind::unix_socket;
  std::int64_t poll_us = 0;
  std::string json;
};

void check(ssize_t result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
}

/// Returns false at the end of the connection.
bool send_all(int socket, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    check(sent, "send");
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// Returns false at the end of the connection.
bool receive_reply(int socket, std::int64_t& reply, std::chrono::microseconds poll) {
  const auto until = Clock::now() + poll;
  ssize_t count = -1;
  while (poll.count() > 0 && Clock::now() < until) {
    count = ::recv(socket, &reply, sizeof reply, MSG_DONTWAIT);
    if (count >= 0 || errno != EAGAIN) break;
    ::sched_yield();
  }
  if (count < 0) count = ::recv(socket, &reply, sizeof reply, MSG_WAITALL);
  return count == static_cast<ssize_t>(sizeof reply);
}

/// An observer: requests actions until the agent has closed, and reports the duration of each.
int observe(const Options& options, const std::string& address, int index) {
  batchrpc_examples::use_one_torch_thread();
  torch::manual_seed(static_cast<std::uint64_t>(index));
  const Socket socket = connect_to(options.kind, address);
  const std::chrono::microseconds poll(options.poll_us);
  at::Tensor state = torch::rand({10, 20, 10});
  std::int64_t action = 0;
  while (true) {
    if (!send_all(socket.get(), state.data_ptr<float>(), kStateBytes)) return 0;
    if (!receive_reply(socket.get(), action, poll)) return 0;
    state = torch::rand({10, 20, 10});
  }
}

/// The agent; returns the seconds of each episode.
class Agent {
 public:
  Agent(const Options& options, std::vector<Socket> observers)
      : options_(options),
        policy_(rl_benchmark::Setting{}),
        observers_(std::move(observers)),
        received_(observers_.size()),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < observers_.size(); ++i) {
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, observers_[i].get(), &event), "epoll_ctl");
    }
    next_batch();
  }

  double run_episode() {
    const auto begin = Clock::now();
    const auto rows = static_cast<std::int64_t>(observers_.size());
    for (std::int64_t left = rows * options_.steps; left > 0;)
      left -= step();
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    log_probs_.clear();
    return seconds.count();
  }

 private:
  // The states of a batch lie in one tensor, each at its observer's place.
  void next_batch() {
    states_ = torch::empty({static_cast<std::int64_t>(observers_.size()), 10, 20, 10});
    complete_ = 0;
  }

  // Receives available data and answers it. Returns the number of answers.
  std::int64_t step() {
    const int count = wait();
    std::int64_t answers = 0;
    for (int i = 0; i < count; ++i) {
      const std::size_t observer = events_[static_cast<std::size_t>(i)].data.u64;
      char* const row = static_cast<char*>(states_.data_ptr()) + observer * kStateBytes;
      const ssize_t got = ::recv(observers_[observer].get(), row + received_[observer],
                                 kStateBytes - received_[observer], MSG_DONTWAIT);
      check(got, "recv");
      if (got == 0) throw std::runtime_error("an observer has ended");
      received_[observer] += static_cast<std::size_t>(got);
      if (received_[observer] < kStateBytes) continue;
      received_[observer] = 0;
      answers += options_.batch ? complete() : answer_one(observer);
    }
    return answers;
  }

  int wait() {
    const std::chrono::microseconds poll(options_.poll_us);
    const auto until = Clock::now() + poll;
    while (poll.count() > 0 && Clock::now() < until) {
      const int count = ::epoll_wait(epoll_.get(), events_.data(), kEvents, 0);
      if (count > 0) return count;
      ::sched_yield();
    }
    const int count = ::epoll_wait(epoll_.get(), events_.data(), kEvents, -1);
    if (count < 0 && errno == EINTR) return 0;
    check(count, "epoll_wait");
    return count;
  }

  std::int64_t complete() {
    if (++complete_ < observers_.size()) return 0;
    auto choice = policy_.choose(states_);
    for (std::size_t i = 0; i < observers_.size(); ++i)
      send_all(observers_[i].get(), choice.actions.data_ptr<std::int64_t>() + i,
               sizeof(std::int64_t));
    log_probs_.push_back(std::move(choice.log_probs));
    next_batch();
    return static_cast<std::int64_t>(observers_.size());
  }

  std::int64_t answer_one(std::size_t observer) {
    const auto row = static_cast<std::int64_t>(observer);
    auto choice = policy_.choose(states_.slice(0, row, row + 1).clone());
    const auto action = choice.actions.item<std::int64_t>();
    log_probs_.push_back(std::move(choice.log_probs));
    send_all(observers_[observer].get(), &action, sizeof action);
    return 1;
  }

  static constexpr int kEvents = 64;

  const Options& options_;
  rl_benchmark::Policy policy_;
  std::vector<Socket> observers_;
  std::vector<std::size_t> received_;
  const Socket epoll_;
  std::array<epoll_event, kEvents> events_{};
  at::Tensor states_;
  std::size_t complete_ = 0;
  std::vector<at::Tensor> log_probs_;
};

int run(int argc, const char* const* argv) {
  const auto parser = batchrpc_examples::make_parser(
      "The floor of rl_benchmark: bare sockets. The first episode is for warming up.");
  CLI::App& app = *parser;
  Options options;
  using batchrpc_examples::between;
  app.add_option("--world-size", options.world_size, "observers and 2")->check(between(3, 1000));
  app.add_option("--batch", options.batch,
                 "run the policy once for all observers, or once for each");
  app.add_option("--episodes", options.episodes)->check(between(2, 1'000'000));
  app.add_option("--steps", options.steps)->check(between(1, 1'000'000));
  app.add_option("--transport", options.kind)
      ->transform(batchrpc_examples::one_of<SocketKind>(
          {{"tcp", SocketKind::tcp}, {"unix", SocketKind::unix_socket}}));
  app.add_option("--poll", options.poll_us, "microseconds to poll before it sleeps")
      ->check(between(std::int64_t{0}, std::int64_t{1'000'000}));
  app.add_option("--json", options.json);
  const bool go = batchrpc_examples::parse_command_line(app, argc, argv, [&] {
    if (!options.json.empty()) batchrpc_examples::check_writable("--json", options.json);
  });
  if (!go) return 0;

  const Listener listener(options.kind);
  const std::string address = listener.address();
  std::vector<ChildProcess> children;
  for (int i = 0; i < options.world_size - 2; ++i)
    children.emplace_back([&, i] { return observe(options, address, i); });
  batchrpc_examples::use_one_torch_thread();
  std::vector<Socket> observers;
  for (std::size_t i = 0; i < children.size(); ++i) {
    pollfd connection{.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
    while (::poll(&connection, 1, 100) == 0) {
      for (ChildProcess& child : children)
        if (child.poll()) throw std::runtime_error("an observer has ended");
    }
    observers.push_back(listener.accept().value());
  }

  std::vector<double> seconds;
  {
    Agent agent(options, std::move(observers));
    for (int episode = 0; episode < options.episodes; ++episode)
      seconds.push_back(agent.run_episode());
  }
  seconds.erase(seconds.begin());
  const double actions = static_cast<double>(children.size()) * options.steps;
  const double rate = actions * static_cast<double>(seconds.size()) /
                      std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const nlohmann::json report{{"system", "bare sockets"},
                              {"actions_per_s", rate},
                              {"machine", batchrpc_examples::machine_report()}};
  std::cout << static_cast<std::int64_t>(rate) << " actions/s" << std::endl;
  if (!options.json.empty()) batchrpc_examples::write_file(options.json, report.dump(2) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("rl_floor", &run, argc, argv);
}
