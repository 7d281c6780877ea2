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

/// A request to a group.
struct Wanted {
  std::size_t steps = 1;
  bool rollout = false;
};

/// The state of a group of environments between two batches.
enum class GroupPhase : std::uint8_t {
  lost,     ///< it has no environments
  pending,  ///< it is being stepped or reset
  ready,    ///< its answer has arrived
  held,     ///< the caller has its answer
};

/// The groups of environments of all workers, and their answers until they become part of a batch.
/// Group b · W + w is buffer b of worker w of W. order() registers a request to a group and returns
/// a ticket; an answer with another ticket is too late. Not thread-safe.
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
  /// The environments of the group that the next step resets; empty: none.
  [[nodiscard]] const std::vector<std::uint8_t>& resting(std::size_t g) const {
    return groups_[g].resting;
  }
  [[nodiscard]] std::size_t count(GroupPhase phase) const noexcept;
  [[nodiscard]] bool any(std::size_t buffer, GroupPhase phase) const noexcept;

  // --- groups

  /// The group drops its answer and awaits a new one, with `bytes` of observations.
  [[nodiscard]] std::uint64_t order(std::size_t g, const Wanted& wanted, std::size_t bytes);
  /// Where to receive that answer's observations; empty if it is too late or they need no
  /// particular place. For a large answer, call it before the observations are read; for a small
  /// one, after.
  [[nodiscard]] Bytes place_for(std::size_t g, std::uint64_t ticket, std::size_t bytes);
  /// Stores that answer; its observations are at `place`. Returns false if it is too late.
  [[nodiscard]] bool answered(std::size_t g, std::uint64_t ticket, StepReply reply, Bytes place,
                              std::vector<std::uint8_t> resting);
  [[nodiscard]] bool awaits(std::size_t g, std::uint64_t ticket) const noexcept {
    return groups_[g].ticket == ticket;
  }
  /// The worker's groups can be stepped from now on.
  void begin(std::size_t worker);
  /// The worker's groups are gone, with all answers in flight.
  void lose(std::size_t worker);

  // --- batches

  /// Whether the caller last asked for whole buffers, rather than for groups in order of arrival.
  void receive_in_order(bool in_order) noexcept { in_order_ = in_order; }
  /// Forgets sent buffers and ready answers: every group will get a new request.
  void start_over();
  /// Returns the buffer that was sent first, and removes it from the sent ones. If none was sent,
  /// returns a buffer that a returned worker is stepping; empty if there is none.
  [[nodiscard]] std::optional<std::size_t> next_buffer();
  /// The number of ready groups.
  [[nodiscard]] std::size_t arrived() const noexcept { return arrived_.size(); }
  /// Returns the groups of a buffer, by worker; none of them may be pending.
  [[nodiscard]] std::vector<std::size_t> take_buffer(std::size_t buffer);
  /// Returns the ready groups in order of arrival.
  [[nodiscard]] std::vector<std::size_t> take_arrived();
  /// Returns the group's part of a batch, without its session and first_id. A group that is not
  /// ready has no valid rows; one that is becomes the caller's.
  [[nodiscard]] BatchPart give_out(std::size_t g);

 private:
  struct Group {
    GroupPhase phase = GroupPhase::lost;
    std::uint64_t ticket = 0;  // of the call in flight
    Wanted wanted;
    Bytes place;  // for its observations
    StepReply reply;
    std::vector<std::uint8_t> resting;
  };

  const std::size_t workers_;
  std::vector<Group> groups_;
  std::deque<std::size_t> sent_;      // buffers, in sending order
  std::vector<std::size_t> arrived_;  // ready groups, in order of arrival
  bool in_order_ = true;
  BatchMemory memory_;
};

}  // namespace batchrpc::env
