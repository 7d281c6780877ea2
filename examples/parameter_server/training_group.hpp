#pragma once

#include <batchrpc/call/call_context.hpp>
#include <batchrpc/future/promise.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// The trainers that an iteration waits for. The expected trainers begin together. A later one
/// begins with the next iteration, so that no iteration changes under its members. A restarted
/// trainer with the same name counts as another trainer, by its incarnation. Thread-safe.
class TrainingGroup {
 public:
  using Trainer = batchrpc::PeerIdentity;

  /// `members_changed(names)` is called, one call at a time, before new members get their answer.
  TrainingGroup(std::size_t expected, std::int64_t iteration, bool waits_for_iterations,
                std::function<void(const std::vector<std::string>&)> members_changed);

  /// Ready with the trainer's first iteration once it is a member.
  batchrpc::Future<std::int64_t> join(const Trainer& trainer);
  /// The trainer has finished or is lost. Returns false if it was neither a member nor waiting.
  bool leave(const Trainer& trainer);

  /// Begins the iteration's update with gradients of `senders`. No trainer is admitted until
  /// finish_iterations() or end_update(). If none of the senders is a member any more, returns
  /// false and begins nothing; the iteration is then left to new members.
  bool begin_update(const std::vector<Trainer>& senders);
  /// Begins iteration `until`, if it has not begun, and admits the trainers that have joined.
  void finish_iterations(std::int64_t until);
  /// Ends the update, whether or not it has finished the iteration.
  void end_update();

  [[nodiscard]] std::int64_t iteration() const;
  [[nodiscard]] bool contains(const Trainer& trainer) const;
  /// Whether the trainer is a member or waits to become one.
  [[nodiscard]] bool knows(const Trainer& trainer) const;
  [[nodiscard]] std::vector<Trainer> members() const;
  /// Whether all expected trainers have joined and the first iteration has begun.
  [[nodiscard]] bool started() const;
  /// Whether it has started and no member is left.
  [[nodiscard]] bool over() const;

 private:
  struct Waiting {
    Trainer trainer;
    batchrpc::Promise<std::int64_t> promise;
  };
  struct Admitted {
    std::vector<batchrpc::Promise<std::int64_t>> promises;
    std::int64_t iteration = 0;
    void answer();
  };
  Admitted admit_all();
  Admitted admit_if_nobody_is_left();
  [[nodiscard]] bool is_member(const Trainer& trainer) const;
  [[nodiscard]] bool is_waiting(const Trainer& trainer) const;
  void notify_members() const;

  const std::size_t expected_;
  const bool waits_;
  const std::function<void(const std::vector<std::string>&)> members_changed_;
  mutable std::mutex mutex_;
  std::int64_t iteration_;
  bool started_ = false;
  bool updating_ = false;
  std::map<std::string, Trainer> members_;  // by name
  std::map<std::string, Waiting> waiting_;
};

}  // namespace batchrpc_examples
