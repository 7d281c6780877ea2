#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/call_phases.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// All calls, or all runs of an operator, of one name and node.
struct ProfileRow {
  /// As PyTorch's profiler of RPC has it: "rpc_async#f(w0 -> w1)" is a call;
  /// "rpc_async#f(w0 -> w1)#remote_op: mul" an operator that ran for it, with " (shared)" after it
  /// if that was for a batch; and "rpc_async#f(w0 -> w1)#remote_op: rpc_async#g(w1 -> w2)" a call
  /// that its handler made; with " (shared)" if a batch's did, for the first of its rows alone.
  /// Calls of which their callee alone has told (ProfilerOptions::answered) have rows of their own,
  /// with " (answered)": of those only the time in which they waited and were handled is known.
  std::string name{};
  int node_id = -1;            ///< the rank of who called, of who ran the operator, or answered
  bool is_call = false;        ///< not an operator
  bool is_answered = false;    ///< calls of which their callee alone has told, see `name`
  std::uint64_t count = 0;     ///< how many calls, or runs
  Duration total{};            ///< a call's: from when it was called to when it had ended;
                               ///< an operator's: from its begin to its end
  Duration self_total{};       ///< a call's: it was encoded and decoded; an operator's: but for the
                               ///< operators of the call that ran within it, on its thread
  std::uint64_t bytes_out{};   ///< of calls
  std::uint64_t bytes_in{};    ///< of replies
  std::uint64_t errors = 0;    ///< calls that failed
  std::uint64_t batched = 0;   ///< calls that were rows of a batch
  std::uint64_t rows = 0;      ///< how many rows their batches had, summed over those calls
  CallPhases phases{};         ///< of all calls; they add up to `total`
  std::size_t first_seen = 0;  ///< which of the rows it was at first, from 0 on

  /// How many rows a call's batch had on average; 0 if none was in one.
  [[nodiscard]] double mean_batch_size() const noexcept {
    return batched == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(batched);
  }
};

/// By what rows are in order: the largest first.
enum class ProfileSort : unsigned char {
  first_seen,  ///< as they came, a call before what ran for it
  self_total,
  total,
  mean,  ///< of the total
  count,
  bytes,  ///< both ways
  errors,
  name,  ///< by the alphabet
};

/// How a table is written.
struct ProfileTableOptions {
  std::size_t row_limit = 100;  ///< so many rows at the most; 0: all
  std::size_t name_width = 0;   ///< what is longer of a name is cut off; 0: nothing
};

/// What calls and their operators cost, by name: the columns of PyTorch's profiler, and more.
///
/// A run of a shared operator has a place in the row of each call of its batch, but counts once in
/// what all rows come to: runs are the same one that have the callee's node, thread, begin, end and
/// name in common. Rows of shared operators so may come to more than 100 %.
class BATCHRPC_EXPORT ProfileTable {
 public:
  /// Looks at all calls; needs the recording no longer. Rows are in the order `first_seen`.
  explicit ProfileTable(const Recording& recording);

  /// In the order in which they were put last.
  /// @{
  [[nodiscard]] const std::vector<ProfileRow>& rows() const& noexcept { return rows_; }
  [[nodiscard]] std::vector<ProfileRow> rows() && { return std::move(rows_); }
  /// @}
  /// What is 100 %: all self times, of each shared run only one.
  [[nodiscard]] Duration self_total() const noexcept { return self_total_; }

  /// Puts the rows in order; those that are equal stay as they are. Returns itself.
  /// @{
  ProfileTable& sort_by(ProfileSort order) &;
  ProfileTable sort_by(ProfileSort order) && { return std::move(sort_by(order)); }
  /// @}

  /// As text: a line for each row, and what all come to.
  [[nodiscard]] std::string table(const ProfileTableOptions& options = {}) const;
  /// As text: a line for each row of calls, with what a call of it spent on each phase on average.
  [[nodiscard]] std::string phases_table(const ProfileTableOptions& options = {}) const;

 private:
  [[nodiscard]] std::string total() const;
  [[nodiscard]] std::string footer(std::size_t rows_not_shown) const;

  std::vector<ProfileRow> rows_;
  Duration self_total_{};
  std::uint64_t left_out_ = 0;
  std::uint64_t sampled_ = 1;
};

}  // namespace batchrpc
