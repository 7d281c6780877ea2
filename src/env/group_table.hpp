#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "env/batch_assembly.hpp"
#include "env/batch_memory.hpp"
#include "env/step_messages.hpp"

namespace batchrpc::env {

/// What is asked of a group.
struct Wanted {
  std::size_t steps = 1;
  bool rollout = false;
};

/// Where a group of environments is between two batches.
enum class GroupPhase : std::uint8_t {
  lost,     ///< there is nothing
  pending,  ///< it is being stepped or reset
  ready,    ///< its answer is here
  held,     ///< the caller has its answer
};

/// The groups of environments of all workers, and their answers on the way to batches. Group b · W
/// + w is buffer b of worker w of W. A group is asked for something by order(), which gives a
/// ticket; what comes with another ticket is too late. Not thread-safe.
class GroupTable {
 public:
  GroupTable(std::size_t workers, std::size_t buffers, std::shared_ptr<PayloadMemory> memory)
      : workers_(workers), groups_(workers * buffers), memory_(std::move(memory)) {}

  [[nodiscard]] std::size_t size() const noexcept { return groups_.size(); }
  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
  [[nodiscard]] std::size_t worker_of(std::size_t g) const noexcept { return g % workers_; }
  [[nodiscard]] std::size_t buffer_of(std::size_t g) const noexcept { return g / workers_; }

  [[nodiscard]] GroupPhase phase(std::size_t g) const { return groups_[g].phase; }
  [[nodiscard]] std::uint64_t ticket(std::size_t g) const { return groups_[g].ticket; }
  /// Which environments of the group are reset by the next step; empty: none is.
  [[nodiscard]] const std::vector<std::uint8_t>& resting(std::size_t g) const {
    return groups_[g].resting;
  }
  [[nodiscard]] std::size_t count(GroupPhase phase) const noexcept;
  [[nodiscard]] bool any(std::size_t buffer, GroupPhase phase) const noexcept;

  // --- groups

  /// The group has no answer now, and awaits one, with `bytes` of observations.
  [[nodiscard]] std::uint64_t order(std::size_t g, const Wanted& wanted, std::size_t bytes);
  /// Where the observations of that answer go; empty if to nowhere in particular, or it is too
  /// late. For a large answer asked before it is read, for a small one when it has come.
  [[nodiscard]] Bytes place_for(std::size_t g, std::uint64_t ticket, std::size_t bytes);
  /// That answer, but for its observations, which lie at `place`, is here. False if it is too late.
  [[nodiscard]] bool answered(std::size_t g, std::uint64_t ticket, StepReply reply, Bytes place,
                              std::vector<std::uint8_t> resting);
  [[nodiscard]] bool awaits(std::size_t g, std::uint64_t ticket) const noexcept {
    return groups_[g].ticket == ticket;
  }
  /// The worker's groups are there, and can be stepped.
  void begin(std::size_t worker);
  /// The worker's groups are gone, and with them what is on its way.
  void lose(std::size_t worker);

  // --- batches

  /// The caller has asked for whole buffers last; else for groups in the order of their answers.
  void receive_in_order(bool in_order) noexcept { in_order_ = in_order; }
  /// Forgets what was sent and what is ready: all that there is will be asked for anew.
  void start_over();
  /// The buffer that was sent first, which counts as sent no more; else, of workers that have come
  /// back, one with something on its way. Nothing: nothing is.
  [[nodiscard]] std::optional<std::size_t> next_buffer();
  /// How many groups are ready.
  [[nodiscard]] std::size_t arrived() const noexcept { return arrived_.size(); }
  /// The groups of a buffer, none of which is pending, by worker.
  [[nodiscard]] std::vector<std::size_t> take_buffer(std::size_t buffer);
  /// The groups that are ready, in the order of their answers.
  [[nodiscard]] std::vector<std::size_t> take_arrived();
  /// The group's part of a batch, but for its session and first_id. One that is not ready has no
  /// rows that are valid; one that is, the caller has from now on.
  [[nodiscard]] BatchPart give_out(std::size_t g);

 private:
  struct Group {
    GroupPhase phase = GroupPhase::lost;
    std::uint64_t ticket = 0;  // of the call that is awaited
    Wanted wanted;
    Bytes place;  // of its observations
    StepReply reply;
    std::vector<std::uint8_t> resting;
  };

  const std::size_t workers_;
  std::vector<Group> groups_;
  std::deque<std::size_t> sent_;      // buffers, in the order in which they were sent
  std::vector<std::size_t> arrived_;  // groups that are ready, in the order of their answers
  bool in_order_ = true;
  BatchMemory memory_;
};

}  // namespace batchrpc::env
