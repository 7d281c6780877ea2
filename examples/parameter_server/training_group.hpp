#pragma once

#include <batchrpc/future/promise.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace batchrpc_examples {

/// Which trainers an iteration waits for. Those that are expected begin together; one that comes
/// later begins with the next iteration, so that no iteration changes under those who are in it.
/// Thread-safe.
class TrainingGroup {
 public:
  /// `members_changed(names)` is told, one call at a time, before those who are new are answered.
  TrainingGroup(std::size_t expected, std::int64_t iteration, bool waits_for_iterations,
                std::function<void(const std::vector<std::string>&)> members_changed);

  /// Ready with the iteration that the trainer begins with, once it is a member. One that is still
  /// a member, since nobody has noticed yet that it was restarted, goes on with this iteration,
  /// which waits for it.
  batchrpc::Future<std::int64_t> join(const std::string& name);
  /// It has finished, or is lost. False when it was neither a member nor about to be.
  bool leave(const std::string& name);
  /// Begins the next one, with those who have joined meanwhile; gives the number of the one before.
  std::int64_t finish_iteration();

  [[nodiscard]] std::int64_t iteration() const;
  [[nodiscard]] bool contains(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> members() const;
  /// All expected have joined, and the first iteration has begun.
  [[nodiscard]] bool started() const;
  /// It has started, and nobody is left.
  [[nodiscard]] bool over() const;

 private:
  struct Admitted {
    std::vector<batchrpc::Promise<std::int64_t>> promises;
    std::int64_t iteration = 0;
    void answer();
  };
  Admitted admit_all();

  const std::size_t expected_;
  const bool waits_;
  const std::function<void(const std::vector<std::string>&)> members_changed_;
  mutable std::mutex mutex_;
  std::int64_t iteration_;
  bool started_ = false;
  std::set<std::string> members_;
  std::map<std::string, batchrpc::Promise<std::int64_t>> waiting_;
};

}  // namespace batchrpc_examples
