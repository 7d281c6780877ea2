#include "rl_benchmark/coordinator.hpp"

#include <algorithm>
#include <batchrpc/torch.hpp>
#include <cstdio>
#include <mutex>
#include <utility>

#include "rl_benchmark/world.hpp"

namespace rl_benchmark {

namespace rpc = batchrpc;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kEndingTakes = 10s;  // limit after all processes were told to end

// A text about a failed call.
template <class T>
std::string failure_of(const std::string& who, const rpc::Result<T>& result) {
  return who + " failed: " + result.message();
}

}  // namespace

// The first peer that was lost, and the reason.
class Coordinator::Losses {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (first_.empty()) first_ = text;
  }
  [[nodiscard]] std::string first() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  mutable std::mutex mutex_;
  std::string first_;
};

Coordinator::Coordinator(const Setting& setting, rpc::Node node,
                         const batchrpc::InterruptFlag& interrupts, bool progress)
    : setting_(setting),
      interrupts_(interrupts),
      progress_(progress),
      agents_(agent_names(setting)),
      observers_(observer_names(setting)),
      losses_(std::make_shared<Losses>()),
      node_(std::move(node)) {
  record_.setting = setting;
  node_.on_membership([losses = losses_](const rpc::MembershipChange& change) {
    if (!change.joined) losses->add(change.peer.name + " was lost: " + change.reason);
  });
  for (const rpc::PeerInfo& peer : node_.peers()) {
    if (peer.state == rpc::PeerState::lost)
      losses_->add(peer.name + " was lost: " + peer.last_error);
  }
}

RunRecord Coordinator::run(std::optional<Clock::time_point> started) {
  for (int number = 0; number < setting_.episodes && record_.incomplete.empty(); ++number) {
    const auto begin = Clock::now();
    auto results = observe();
    EpisodeRecord episode;
    episode.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    finish_episode(results, episode);
    episode.cut = !record_.incomplete.empty();
    if (number == 0 && started) {
      for (const auto& result : results) {
        if (!result || result->first_action_ns == 0) continue;
        const Clock::time_point first{std::chrono::nanoseconds(result->first_action_ns)};
        const double seconds = std::chrono::duration<double>(first - *started).count();
        record_.start_to_first_action =
            std::min(record_.start_to_first_action.value_or(seconds), seconds);
      }
    }
    if (progress_) {
      std::printf("Episode %d - %.3f s, %.0f actions/s\n", number, episode.seconds,
                  static_cast<double>(episode.actions) / episode.seconds);
      std::fflush(stdout);
    }
    record_.episodes.push_back(std::move(episode));
  }
  return std::move(record_);
}

std::vector<rpc::Result<ObserverEpisode>> Coordinator::observe() {
  auto episodes = rpc::when_all_settled(node_.each(observers_)
                                            .with({.timeout = rpc::kNoTimeout})
                                            .call<&Observer::run_episode>(setting_.steps));
  while (!episodes.wait_for(50ms)) {
    const std::string why = reason_to_stop();
    if (why.empty()) continue;
    end_early(why);
    stop_others();
    if (episodes.wait_for(kEndingTakes)) break;
    return {};
  }
  if (const std::string why = reason_to_stop(); !why.empty()) end_early(why);
  return std::move(episodes).get();
}

void Coordinator::finish_episode(std::vector<rpc::Result<ObserverEpisode>>& results,
                                 EpisodeRecord& episode) {
  std::vector<std::vector<at::Tensor>> rewards(agents_.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) {
      end_early(failure_of(observers_[i], results[i]));
      continue;
    }
    ObserverEpisode& of_one = *results[i];
    if (!of_one.failure.empty()) end_early(observers_[i] + " got no action: " + of_one.failure);
    episode.actions += static_cast<std::int64_t>(of_one.latencies.size());
    episode.observer_latency.insert(episode.observer_latency.end(), of_one.latencies.begin(),
                                    of_one.latencies.end());
    rewards[static_cast<std::size_t>(agent_of(setting_, static_cast<int>(i)))].push_back(
        std::move(of_one.rewards));
  }

  for (std::size_t agent = 0; agent < agents_.size(); ++agent) {
    auto call = node_.call<&Agent::finish_episode>(agents_[agent], std::move(rewards[agent]));
    const auto measured = std::move(call).result();
    if (!measured) {
      end_early(failure_of(agents_[agent], measured));
      continue;
    }
    if (measured->kept != measured->rewards) {
      end_early(agents_[agent] + " has stored " + std::to_string(measured->kept) +
                " log-probabilities and got " + std::to_string(measured->rewards) + " rewards");
    }
    for (std::size_t run = 0; run < measured->latencies.size(); ++run) {
      episode.agent_latency.push_back(measured->latencies[run]);
      episode.agent_throughput.push_back(measured->rows[run] / measured->latencies[run]);
    }
    record_.private_memory = std::max(record_.private_memory, measured->private_memory);
    record_.resident_memory = std::max(record_.resident_memory, measured->resident_memory);
    record_.threads = std::max(record_.threads, measured->threads);
  }
}

std::string Coordinator::reason_to_stop() const {
  if (interrupts_.is_set()) return "interrupted";
  return losses_->first();
}

void Coordinator::end_early(const std::string& why) {
  if (record_.incomplete.empty()) record_.incomplete = why;
}

// Stops observers first. Their requests that wait for others are answered when the agents end, and
// no new requests follow.
void Coordinator::stop_others() {
  const rpc::CallOptions soon{.timeout = 2s};
  for (const auto* group : {&observers_, &agents_}) {
    rpc::when_all_settled(node_.each(*group).with(soon).call<void()>(kStop)).wait();
  }
}

void Coordinator::dismiss(bool more) {
  for (const auto* group : {&observers_, &agents_}) {
    rpc::when_all_settled(node_.each(*group).with({.timeout = 2s}).call<void(bool)>(kEnd, more))
        .wait();
  }
}

}  // namespace rl_benchmark
