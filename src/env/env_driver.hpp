#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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

  void reset(std::optional<std::uint64_t> seed);
  /// `skip(i)`: action i is looked at by nobody; null: all are.
  void step(std::span<const EnvBatch::Group> sources, std::span<const std::byte> actions,
            std::size_t steps, const std::function<bool(std::size_t)>& skip);
  void roll_out(std::span<const EnvBatch::Group> sources, std::size_t steps);
  [[nodiscard]] std::size_t under_way() const;
  [[nodiscard]] EnvBatch wait_for_buffer();
  [[nodiscard]] EnvBatch wait_for_groups(std::size_t min_groups);
  [[nodiscard]] Future<void> push_policy(Bytes weights, std::uint64_t version);

  [[nodiscard]] std::vector<WorkerState> worker_states() const;
  [[nodiscard]] const EnvSpec& spec() const noexcept { return *spec_; }
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
  struct Group {
    Phase phase = Phase::lost;
    std::uint64_t ticket = 0;  // of the call that is awaited
    std::uint32_t steps = 1;
    Bytes place;  // of its observations
    env::StepReply reply;
  };
  struct Worker {
    WorkerState told;
    std::uint64_t session = 0;
    bool opening = false;
    std::exception_ptr refusal;  // why it cannot be opened
  };
  /// A call that is about to be made.
  struct Order {
    std::size_t group = 0;
    std::uint64_t ticket = 0;
    std::uint64_t session = 0;
  };

  [[nodiscard]] std::size_t worker_count() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t worker_of(std::size_t group) const noexcept {
    return group % worker_count();
  }
  [[nodiscard]] std::size_t buffer_of(std::size_t group) const noexcept {
    return group / worker_count();
  }
  [[nodiscard]] std::size_t group_bytes(std::size_t steps) const noexcept {
    return steps * options_.envs_per_worker * observation_bytes_;
  }

  // --- sending (env_driver.cpp)
  [[nodiscard]] std::vector<Order> order_steps(std::span<const EnvBatch::Group> sources,
                                               std::size_t steps, std::vector<std::size_t>& places);
  Order order(std::size_t group, std::size_t steps);
  void send_step(const Order& order, std::size_t steps, Bytes actions);
  void send_reset(const Order& order, std::optional<std::uint64_t> seed);
  detail::OutgoingOptions how_to_call(const Node& node, const Order& order, std::size_t steps);

  // --- receiving (env_driver_replies.cpp)
  void take(const Order& order, Result<env::StepReply> result);
  void require_whole(const env::StepReply& reply, std::size_t steps) const;
  [[nodiscard]] Bytes place_for(const Order& order, std::size_t bytes);
  [[nodiscard]] EnvBatch make_batch(const std::vector<std::size_t>& groups);
  void add_group(EnvBatch& batch, std::size_t place, std::size_t group);

  // --- workers (env_driver_workers.cpp)
  void open(std::size_t worker, TimePoint give_up, Duration pause);
  void opened(std::size_t worker, TimePoint give_up, Duration pause, Result<env::OpenReply> result);
  void open_later(std::size_t worker, TimePoint give_up, Duration pause, const std::string& why);
  void begin_again(std::size_t worker);
  void lose(std::size_t worker, std::uint64_t session, const std::exception_ptr& error);

  // --- waiting; all with the lock
  void wait_until(std::unique_lock<std::mutex>& lock, std::function<bool()> done);
  void wake(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::size_t count(Phase phase) const noexcept;
  [[nodiscard]] bool any(std::size_t buffer, Phase phase) const noexcept;
  [[nodiscard]] bool any_live() const noexcept;
  [[noreturn]] void throw_nothing() const;

  void with_node(const std::function<void(const Node&)>& use) const;

  const VectorEnvOptions options_;
  const std::shared_ptr<NodeCore> core_;
  const std::shared_ptr<Loop> loop_;

  mutable std::mutex mutex_;
  std::shared_ptr<const EnvSpec> spec_;  // set once, before groups are used
  std::size_t extras_ = 0;               // the same
  std::size_t observation_bytes_ = 0;    // the same
  std::size_t action_bytes_ = 0;         // the same
  std::uint64_t seed_;
  bool was_reset_ = false;
  std::vector<Worker> workers_;
  std::vector<Group> groups_;
  std::deque<std::size_t> sent_;      // buffers, in the order in which they were sent
  std::vector<std::size_t> arrived_;  // groups that are ready, in the order of their answers
  bool in_order_ = true;              // the caller has asked for whole buffers last
  env::BatchMemory memory_;
  Bytes weights_;
  std::uint64_t weights_version_ = 0;
  bool has_weights_ = false;

  std::optional<Promise<void>> waiter_;
  std::function<bool()> waited_for_;
};

}  // namespace batchrpc
