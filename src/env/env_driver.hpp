#pragma once

#include <cstddef>
#include <cstdint>
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
#include "env/awaited_condition.hpp"
#include "env/env_description.hpp"
#include "env/group_table.hpp"
#include "env/step_messages.hpp"

namespace batchrpc {

/// The driver's end: tracks which workers are live, opens the others, and sends requests to their
/// groups of environments.
///
/// Thread-safe: replies arrive on the node's threads. It sends nothing, and runs none of the
/// program's code, under its lock.
class VectorEnv::State : public std::enable_shared_from_this<State> {
 public:
  State(const Node& node, VectorEnvOptions options);

  /// Opens all workers; see VectorEnv's constructor.
  void open_all();
  /// Ignores all replies from now on, and opens no worker again.
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
  [[nodiscard]] const EnvSpec& spec() const noexcept { return *description_.spec(); }
  [[nodiscard]] std::size_t extras() const noexcept { return description_.shape().extras; }
  [[nodiscard]] std::size_t max_steps() const noexcept { return description_.most_steps(); }
  [[nodiscard]] std::size_t size() const noexcept {
    return groups_.size() * options_.envs_per_worker;
  }

 private:
  struct Worker {
    WorkerState told;
    env::SessionId session;         // the worker's number for its environments
    std::uint64_t epoch = 0;        // this side's number for them: EnvBatch::Group::session
    std::uint64_t incarnation = 0;  // of its node
    TimePoint give_up{};            // when to give up opening it
    TimePoint overdue{};            // when to warn that its process is there, but cannot be opened
    Duration pause{};               // before it is opened again; grows until it answers a step
    std::exception_ptr refusal;     // why it cannot be opened
  };
  struct Weights {
    Bytes bytes;
    std::uint64_t version = 0;
  };
  /// A group to be stepped, and its place in the batch.
  struct Target {
    std::size_t group = 0;
    std::size_t place = 0;
    std::uint64_t epoch = 0;
  };
  /// A call to be made.
  struct Order {
    std::size_t group = 0;
    std::size_t place = 0;  // place of its actions
    std::uint64_t ticket = 0;
    env::SessionId session{};
    env::Wanted wanted{};
  };
  /// Work to do after the mutex has been released, because it sends or runs the program's code.
  struct [[nodiscard]] Deferred {
    std::optional<Promise<void>> wakes{};  // to keep
    std::string warning{};                 // to log
    std::vector<Order> resets{};           // to send
    std::uint64_t seed = 0;              // the seed of the very first environment, for these resets
    std::optional<std::size_t> opens{};  // the worker to open
    std::optional<TimePoint> opens_at{};  // when to open it, if not at once
  };

  [[nodiscard]] std::size_t worker_count() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t worker_of(std::size_t group) const noexcept {
    return groups_.worker_of(group);
  }

  // --- ordering (env_driver.cpp)
  [[nodiscard]] std::vector<Target> targets_of(std::span<const EnvBatch::Group> sources) const;
  void require_allowed(const std::vector<Target>& targets, std::span<const std::byte> actions,
                       std::size_t steps) const;
  [[nodiscard]] std::vector<Order> order_all(const std::vector<Target>& targets,
                                             const env::Wanted& wanted);
  /// The caller must hold the mutex.
  [[nodiscard]] Order order(std::size_t group, const env::Wanted& wanted);

  // --- calling (env_driver_calls.cpp)
  void send_step(const Order& order, Bytes actions);
  void send_reset(const Order& order, std::optional<std::uint64_t> seed);
  [[nodiscard]] Future<void> send_weights(std::size_t worker, const env::SessionId& session,
                                          const Weights& weights, Duration timeout);
  [[nodiscard]] Future<env::OpenReply> send_open(std::size_t worker, Duration timeout);
  detail::OutgoingOptions how_to_call(const Order& order);
  void with_node(const std::function<void(const Node&)>& use) const;

  // --- receiving (env_driver_replies.cpp)
  void take(const Order& order, Result<env::StepReply> result);
  [[nodiscard]] Deferred take_reply(const Order& order, env::StepReply reply);
  void require_whole(const env::StepReply& reply, const env::Wanted& wanted) const;
  [[nodiscard]] std::vector<std::uint8_t> resting_after(const env::StepReply& reply) const;
  [[nodiscard]] Bytes place_for(const Order& order, std::size_t bytes);
  /// The caller must hold the mutex.
  [[nodiscard]] std::vector<env::BatchPart> give_out(const std::vector<std::size_t>& groups);

  // --- workers (env_driver_workers.cpp)
  void open(std::size_t worker);
  void opened(std::size_t worker, Result<env::OpenReply> result);
  void give_weights(std::size_t worker, const env::SessionId& session,
                    std::shared_ptr<const Weights> weights);
  void weights_taken(std::size_t worker, const env::SessionId& session,
                     const std::shared_ptr<const Weights>& weights, const Result<void>& result);
  void peer_joined(const PeerInfo& peer);
  void peer_lost(const PeerInfo& peer, const std::string& reason);
  void perform(Deferred todo);
  [[nodiscard]] std::size_t index_of(const std::string& worker) const;
  [[nodiscard]] bool is_final(const std::exception_ptr& error) const;
  /// The caller must hold the mutex.
  /// @{
  void accept(Worker& worker, const env::OpenReply& reply);
  [[nodiscard]] Deferred begin(std::size_t worker);
  [[nodiscard]] Deferred not_opened(std::size_t worker, const std::exception_ptr& error);
  [[nodiscard]] Deferred refuse(std::size_t worker, std::exception_ptr why);
  [[nodiscard]] Deferred lose(std::size_t worker, const std::exception_ptr& error);
  void open_later(std::size_t worker, Deferred& todo);
  /// @}

  // --- waiting (env_driver_waiting.cpp)
  [[nodiscard]] std::unique_lock<std::mutex> lock_when(const std::function<bool()>& condition,
                                                       TimePoint deadline = TimePoint::max());
  /// The caller must hold the mutex.
  /// @{
  [[nodiscard]] bool any_live() const noexcept;
  [[noreturn]] void throw_nothing() const;
  /// @}

  const VectorEnvOptions options_;
  const std::shared_ptr<NodeCore> core_;
  const std::shared_ptr<Loop> loop_;
  std::uint64_t membership_ = 0;  // the handler's number

  mutable std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  env::EnvDescription description_;  // may be read without the mutex once groups are used
  std::uint64_t seed_;
  bool was_reset_ = false;
  std::vector<Worker> workers_;
  std::uint64_t epochs_ = 0;
  env::GroupTable groups_;
  std::shared_ptr<const Weights> weights_;  // the last ones pushed; null: none were
  env::AwaitedCondition waiter_;
};

}  // namespace batchrpc
