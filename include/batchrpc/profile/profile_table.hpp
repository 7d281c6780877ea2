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
  /// The name as in PyTorch's RPC profiler:
  /// - "rpc_async#f(w0 -> w1)" is a call.
  /// - "rpc_async#f(w0 -> w1)#remote_op: mul" is an operator that ran for it, with " (shared)"
  ///   after it if it ran for a batch.
  /// - "rpc_async#f(w0 -> w1)#remote_op: rpc_async#g(w1 -> w2)" is a call that its handler made,
  ///   with " (shared)" if a batch's handler did; it then counts for the batch's first row only.
  ///
  /// Calls that only their callee reported (ProfilerOptions::answered) have rows of their own, with
  /// " (answered)". Only their waiting and handling times are known.
  std::string name{};
  int node_id = -1;          ///< rank of the node that called, ran the operator, or answered
  bool is_call = false;      ///< not an operator
  bool is_answered = false;  ///< calls that only their callee reported, see `name`
  std::uint64_t count = 0;   ///< number of calls, or runs
  Duration total{};       ///< call: from its start to its end; operator: from its begin to its end
  Duration self_total{};  ///< call: encoding and decoding; operator: without the operators of the
                          ///< same call that ran inside it, on its thread
  std::uint64_t bytes_out{};   ///< of calls
  std::uint64_t bytes_in{};    ///< of replies
  std::uint64_t errors = 0;    ///< calls that failed
  std::uint64_t batched = 0;   ///< calls that were rows of a batch
  std::uint64_t rows = 0;      ///< sizes of their batches in rows, summed over those calls
  CallPhases phases{};         ///< of all calls; they add up to `total`
  std::size_t first_seen = 0;  ///< its place in the order of first appearance, from 0

  /// The mean size of a call's batch in rows; 0 if no call was in one.
  [[nodiscard]] double mean_batch_size() const noexcept {
    return batched == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(batched);
  }
};

/// The order of rows: the largest first.
enum class ProfileSort : unsigned char {
  first_seen,  ///< as recorded, a call before the operators and calls that ran for it
  self_total,
  total,
  mean,  ///< of `total`
  count,
  bytes,  ///< both ways
  errors,
  name,  ///< alphabetically
};

/// How a table is written.
struct ProfileTableOptions {
  std::size_t row_limit = 100;  ///< most rows; 0: all
  std::size_t name_width = 0;   ///< longer names are cut off here; 0: never
};

/// The cost of calls and their operators, by name: the columns of PyTorch's profiler, and more.
///
/// A run of a shared operator appears in the row of each call of its batch, but counts once in the
/// totals. Two entries are the same run if node, thread, begin, end and name are equal. Rows of
/// shared operators may therefore add up to more than 100 %.
class BATCHRPC_EXPORT ProfileTable {
 public:
  /// Reads all calls; does not need the recording afterwards. Rows are in the order `first_seen`.
  explicit ProfileTable(const Recording& recording);

  /// The rows in their current order.
  /// @{
  [[nodiscard]] const std::vector<ProfileRow>& rows() const& noexcept { return rows_; }
  [[nodiscard]] std::vector<ProfileRow> rows() && { return std::move(rows_); }
  /// @}
  /// The time that counts as 100 %: all self times, with each shared run once.
  [[nodiscard]] Duration self_total() const noexcept { return self_total_; }

  /// Sorts the rows, keeping the order of equal ones. Returns itself.
  /// @{
  ProfileTable& sort_by(ProfileSort order) &;
  ProfileTable sort_by(ProfileSort order) && { return std::move(sort_by(order)); }
  /// @}

  /// Returns the table as text: a line for each row, and the totals.
  [[nodiscard]] std::string table(const ProfileTableOptions& options = {}) const;
  /// Returns text with a line for each row of calls: the mean time of a call in each phase.
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
