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

/// Which trainers an iteration waits for. Those that are expected begin together; one that comes
/// later begins with the next iteration, so that no iteration changes under those who are in it.
/// Who is restarted under its name is another trainer, by its incarnation. Thread-safe.
class TrainingGroup {
 public:
  using Trainer = batchrpc::PeerIdentity;

  /// `members_changed(names)` is told, one call at a time, before those who are new are answered.
  TrainingGroup(std::size_t expected, std::int64_t iteration, bool waits_for_iterations,
                std::function<void(const std::vector<std::string>&)> members_changed);

  /// Ready with the iteration that the trainer begins with, once it is a member.
  batchrpc::Future<std::int64_t> join(const Trainer& trainer);
  /// It has finished, or is lost. False when it was neither a member nor about to be.
  bool leave(const Trainer& trainer);

  /// The iteration's update begins, with gradients of these. Nobody is admitted until
  /// finish_iterations() or end_update(). False, and nothing begins, when none of them is a member
  /// any more: the iteration is then left to those who come.
  bool begin_update(const std::vector<Trainer>& senders);
  /// Begins the iteration of this number, if it has not begun, with those who have joined
  /// meanwhile.
  void finish_iterations(std::int64_t until);
  /// The update is over, whether or not it has finished the iteration.
  void end_update();

  [[nodiscard]] std::int64_t iteration() const;
  [[nodiscard]] bool contains(const Trainer& trainer) const;
  /// It is a member, or about to be.
  [[nodiscard]] bool knows(const Trainer& trainer) const;
  [[nodiscard]] std::vector<Trainer> members() const;
  /// All expected have joined, and the first iteration has begun.
  [[nodiscard]] bool started() const;
  /// It has started, and nobody is left.
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
