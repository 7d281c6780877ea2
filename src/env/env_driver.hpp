#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchrpc/env/vector_env.hpp"
#include "batchrpc/future/promise.hpp"
#include "env/batch_memory.hpp"
#include "env/reply_size.hpp"
#include "env/step_messages.hpp"

namespace batchrpc {

/// The driver's end: what is known of the workers and of their groups of environments. Group
/// b · W + w is buffer b of worker w of W.
///
/// Thread-safe: replies come on the node's threads. Nothing is sent, and no user's code runs, under
/// its lock.
class VectorEnv::State : public std::enable_shared_from_this<State> {
 public:
  State(const Node& node, VectorEnvOptions options);

  /// Opens all workers; see the constructor of VectorEnv.
  void open_all();
  /// From now on what comes is ignored, and no worker is opened again.
  void close() noexcept;

  void reset(std::optional<std::uint64_t> seed);
  void step(std::span<const EnvBatch::Group> sources, std::span<const std::byte> actions,
            std::size_t steps);
  void roll_out(std::span<const EnvBatch::Group> sources, std::size_t steps);
  /// Throws InvalidArgument for a batch of another VectorEnv.
  void require_own(const EnvBatch& batch) const;
  [[nodiscard]] std::size_t under_way() const;
  [[nodiscard]] EnvBatch wait_for_buffer();
  [[nodiscard]] EnvBatch wait_for_groups(std::size_t min_groups);
  [[nodiscard]] Future<void> push_policy(Bytes weights, std::uint64_t version);

  [[nodiscard]] bool wait_for_workers(std::size_t live, Duration timeout);
  [[nodiscard]] std::vector<WorkerState> worker_states() const;
  [[nodiscard]] const EnvSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] std::size_t extras() const noexcept { return shape_.extras; }
  [[nodiscard]] std::size_t max_steps() const noexcept { return most_steps_; }
  [[nodiscard]] std::size_t size() const noexcept {
    return groups_.size() * options_.envs_per_worker;
  }

 private:
  enum class Phase : std::uint8_t {
    lost,     // there is nothing
    pending,  // it is being stepped or reset
    ready,    // its answer is here
    held,     // the caller has its answer
  };
  /// What is asked of a group.
  struct Wanted {
    std::size_t steps = 1;
    bool rollout = false;
  };
  struct Group {
    Phase phase = Phase::lost;
    std::uint64_t ticket = 0;  // of the call that is awaited
    Wanted wanted;
    Bytes place;  // of its observations
    env::StepReply reply;
    std::vector<std::uint8_t> resting;  // [k]: is reset by the next step; empty: none is
  };
  struct Worker {
    WorkerState told;
    env::SessionId session;         // what it calls its environments
    std::uint64_t epoch = 0;        // what they are called here: EnvBatch::Group::session
    std::uint64_t incarnation = 0;  // of its node
    TimePoint give_up{};            // while it is being opened
    TimePoint overdue{};            // when it is told that its process is there, but not open
    Duration pause{};               // before it is opened again; grows until it answers a step
    std::exception_ptr refusal;     // why it cannot be opened
  };
  struct Weights {
    Bytes bytes;
    std::uint64_t version = 0;
  };
  /// A group that is to be stepped, and the one of a batch that it is.
  struct Target {
    std::size_t group = 0;
    std::size_t place = 0;
    std::uint64_t epoch = 0;
  };
  /// A call that is about to be made.
  struct Order {
    std::size_t group = 0;
    std::size_t place = 0;  // of the actions
    std::uint64_t ticket = 0;
    env::SessionId session{};
    Wanted wanted{};
  };

  [[nodiscard]] std::size_t worker_count() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t worker_of(std::size_t group) const noexcept {
    return group % worker_count();
  }
  [[nodiscard]] std::size_t buffer_of(std::size_t group) const noexcept {
    return group / worker_count();
  }
  [[nodiscard]] std::size_t group_bytes(std::size_t steps) const noexcept {
    return steps * options_.envs_per_worker * shape_.observation_bytes;
  }

  // --- ordering (env_driver.cpp)
  [[nodiscard]] std::vector<Target> targets_of(std::span<const EnvBatch::Group> sources) const;
  void require_allowed(const std::vector<Target>& targets, std::span<const std::byte> actions,
                       std::size_t steps) const;
  [[nodiscard]] std::vector<Order> order_all(const std::vector<Target>& targets,
                                             const Wanted& wanted);
  void require_steps(std::size_t steps) const;
  void require_policy(const std::string& caller) const;
  Order order(std::size_t group, const Wanted& wanted);  // with the lock

  // --- calling (env_driver_calls.cpp)
  void send_step(const Order& order, Bytes actions);
  void send_reset(const Order& order, std::optional<std::uint64_t> seed);
  [[nodiscard]] Future<void> send_weights(std::size_t worker, const env::SessionId& session,
                                          const Weights& weights, Duration timeout);
  [[nodiscard]] Future<env::OpenReply> send_open(std::size_t worker, Duration timeout);
  detail::OutgoingOptions how_to_call(const Node& node, const Order& order);
  void with_node(const std::function<void(const Node&)>& use) const;

  // --- receiving (env_driver_replies.cpp)
  void take(const Order& order, Result<env::StepReply> result);
  void require_whole(const env::StepReply& reply, const Wanted& wanted) const;
  [[nodiscard]] std::vector<std::uint8_t> resting_after(const env::StepReply& reply) const;
  [[nodiscard]] Bytes place_for(const Order& order, std::size_t bytes);
  [[nodiscard]] EnvBatch give_out(std::unique_lock<std::mutex> lock,
                                  const std::vector<std::size_t>& groups);

  // --- workers (env_driver_workers.cpp)
  void open(std::size_t worker);
  void open_later(std::unique_lock<std::mutex> lock, std::size_t worker);
  void opened(std::size_t worker, Result<env::OpenReply> result);
  void accept(Worker& worker, const env::OpenReply& reply);
  void give_weights(std::size_t worker, const env::SessionId& session,
                    std::shared_ptr<const Weights> weights);
  void begin(std::unique_lock<std::mutex> lock, std::size_t worker);
  void not_opened(std::unique_lock<std::mutex> lock, std::size_t worker,
                  const std::exception_ptr& error);
  void refuse(std::unique_lock<std::mutex> lock, std::size_t worker, std::exception_ptr why);
  void lose(std::unique_lock<std::mutex> lock, std::size_t worker, const std::exception_ptr& error);
  [[nodiscard]] std::size_t index_of(const std::string& worker) const;
  void peer_joined(const PeerInfo& peer);
  void peer_lost(const PeerInfo& peer, const std::string& reason);
  [[nodiscard]] bool is_final(const std::exception_ptr& error) const;

  // --- waiting; all with the lock (env_driver_waiting.cpp)
  bool wait_until(std::unique_lock<std::mutex>& lock, std::function<bool()> done,
                  TimePoint deadline = TimePoint::max());
  void wake(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::size_t count(Phase phase) const noexcept;
  [[nodiscard]] bool any(std::size_t buffer, Phase phase) const noexcept;
  [[nodiscard]] bool any_live() const noexcept;
  [[noreturn]] void throw_nothing() const;

  const VectorEnvOptions options_;
  const std::shared_ptr<NodeCore> core_;
  const std::shared_ptr<Loop> loop_;
  std::uint64_t membership_ = 0;  // the handler's number

  mutable std::mutex mutex_;
  bool closed_ = false;
  std::shared_ptr<const EnvSpec> spec_;  // set once, before groups are used
  std::string described_by_;             // the worker whose that was
  env::StepShape shape_;                 // the same
  std::optional<std::uint32_t> extras_;  // the same; none: the workers have no policy
  std::size_t most_steps_ = 0;           // the same
  std::uint64_t seed_;
  bool was_reset_ = false;
  std::vector<Worker> workers_;
  std::uint64_t epochs_ = 0;
  std::vector<Group> groups_;
  std::deque<std::size_t> sent_;      // buffers, in the order in which they were sent
  std::vector<std::size_t> arrived_;  // groups that are ready, in the order of their answers
  bool in_order_ = true;              // the caller has asked for whole buffers last
  env::BatchMemory memory_;
  std::shared_ptr<const Weights> weights_;  // that were pushed last; null: none were

  std::optional<Promise<void>> waiter_;
  std::function<bool()> waited_for_;
};

}  // namespace batchrpc
