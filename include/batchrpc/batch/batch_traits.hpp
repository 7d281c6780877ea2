#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc {
namespace detail {

/// What stacking needs to know, and what it reports.
struct Stacking {
  const std::string& device;  ///< BatchOptions::device
  BatchOutcome& outcome;      ///< counts copies
  bool keep = false;          ///< the rows may be stacked again, so they must not change
};

/// Returns the size of a value in bytes, as far as it is easy to find out.
template <class T>
std::size_t footprint(const T& value) {
  if constexpr (requires { sizeof(value[0]) * value.size(); }) {
    return sizeof(T) + value.size() * sizeof(value[0]);
  } else {
    return sizeof(T);
  }
}

}  // namespace detail

/// How values of `T`, one per row, become one argument of a handler. The default is a vector;
/// `batchrpc/torch.hpp` stacks tensors.
template <class T>
struct BatchTraits {
  /// The type of the handler's argument. A caller of many rows also sends this type, and gets it if
  /// `T` is the result.
  using Stacked = std::vector<T>;

  /// Gathers the rows of a batch, in their order. Used by the thread that runs the batch.
  class Builder {
   public:
    /// `rows` is the number of rows, including padding.
    Builder(std::size_t rows, const detail::Stacking& /*how*/) { stacked_.reserve(rows); }
    /// Adds the next row.
    void add(T&& row) { stacked_.push_back(std::move(row)); }
    /// Adds the next rows, from a caller of many.
    void add_all(Stacked&& rows) {
      stacked_.insert(stacked_.end(), std::make_move_iterator(rows.begin()),
                      std::make_move_iterator(rows.end()));
    }
    /// Returns all rows, followed by `padding` copies of the last.
    Stacked finish(std::size_t padding) {
      if constexpr (std::is_copy_constructible_v<T>) {
        for (; padding > 0; --padding) {
          T copy = stacked_.back();
          stacked_.push_back(std::move(copy));
        }
      }
      return std::move(stacked_);
    }

   private:
    Stacked stacked_;
  };

  /// Returns the number of rows that a caller of many has sent. Throws InvalidArgument if the value
  /// has no rows to count.
  static std::size_t rows(const Stacked& stacked) { return stacked.size(); }
  /// Returns one of many rows.
  static typename Stacked::const_reference row(const Stacked& stacked, std::size_t index) {
    return stacked[index];
  }
  /// Returns the same value for each of many rows.
  static Stacked repeat(const T& value, std::size_t rows) { return Stacked(rows, value); }
  /// Returns the approximate size in bytes of one row, or of many.
  /// @{
  static std::size_t bytes(const T& row) { return detail::footprint(row); }
  static std::size_t bytes_of_all(const Stacked& rows) {
    std::size_t bytes = 0;
    for (const auto& row : rows)
      bytes += detail::footprint(row);
    return bytes;
  }
  /// @}
  ///
  /// Appends what rows must have in common to be stacked (for plain values: nothing). Without a
  /// BatchRules::key, rows with different kinds go into different batches. May throw the error with
  /// which the call is to fail.
  /// @{
  static void append_kind(const T& /*row*/, std::string& /*kind*/) {}
  static void append_kind_of_all(const Stacked& /*rows*/, std::string& /*kind*/) {}
  /// @}
};

/// The rows that one call sends at once, or their results: a `std::vector<T>`, or a stacked tensor.
template <class T>
using ManyRows = typename BatchTraits<T>::Stacked;

/// The return type of a handler that has one result for all callers. The result is encoded once,
/// and every reply has the same bytes.
///
///     return batchrpc::ForAll(model.parameters());
template <class R>
struct ForAll {
  /// Wraps that result.
  explicit ForAll(R result) : value(std::move(result)) {}
  R value;  ///< copied for callers of this process
};

/// How a handler's results, one for each row of its batch, become the callers' values of `R`. It is
/// constructed from the results, and `size()` returns their number. Each result is then taken once,
/// by `row(i)` or, for a caller of many, `rows(first, count)`. The default takes a vector;
/// `batchrpc/torch.hpp` splits tensors.
template <class R, class Results>
class BatchSplit;

template <class R>
class BatchSplit<R, std::vector<R>> {
 public:
  explicit BatchSplit(std::vector<R>&& results) : results_(std::move(results)) {}
  [[nodiscard]] std::size_t size() const { return results_.size(); }
  R row(std::size_t i) {
    if constexpr (std::is_same_v<R, bool>) {
      return results_[i];
    } else {
      return std::move(results_[i]);
    }
  }
  ManyRows<R> rows(std::size_t first, std::size_t count) {
    ManyRows<R> many;
    if constexpr (std::is_same_v<ManyRows<R>, std::vector<R>>) {
      many.reserve(count);
      for (std::size_t i = first; i < first + count; ++i)
        many.push_back(row(i));
    } else {  // for example a vector of tensors
      BatchOutcomeSink sink;
      typename BatchTraits<R>::Builder builder(count, {sink.device, sink.outcome});
      for (std::size_t i = first; i < first + count; ++i)
        builder.add(row(i));
      many = builder.finish(0);
    }
    return many;
  }

 private:
  struct BatchOutcomeSink {
    std::string device;
    detail::BatchOutcome outcome;
  };
  std::vector<R> results_;
};

/// One outcome per row. A caller of many gets the results of its rows, or the first error among
/// them.
template <class R>
class BatchSplit<R, std::vector<Result<R>>> {
 public:
  explicit BatchSplit(std::vector<Result<R>>&& results) : results_(std::move(results)) {}
  [[nodiscard]] std::size_t size() const { return results_.size(); }
  Result<R> row(std::size_t i) { return std::move(results_[i]); }
  Result<ManyRows<R>> rows(std::size_t first, std::size_t count) {
    std::vector<R> values;
    for (std::size_t i = first; i < first + count; ++i) {
      if (!results_[i]) return results_[i].error();
      values.push_back(std::move(*results_[i]));
    }
    return BatchSplit<R, std::vector<R>>(std::move(values)).rows(0, count);
  }

 private:
  std::vector<Result<R>> results_;
};

/// A tuple of batches (tensors or vectors) is a batch of tuples. So a handler of
/// `Batcher<std::tuple<at::Tensor, float>(at::Tensor)>` may return a tuple of a tensor [B, d…] and
/// a tensor [B].
template <class... R, class... Stacked>
requires(sizeof...(R) == sizeof...(Stacked) &&
         sizeof...(R) > 0) class BatchSplit<std::tuple<R...>, std::tuple<Stacked...>> {
  using Row = std::tuple<R...>;

 public:
  explicit BatchSplit(std::tuple<Stacked...>&& results)
      : BatchSplit(std::move(results), std::index_sequence_for<R...>{}) {}

  [[nodiscard]] std::size_t size() const {
    const auto counts = std::apply(
        [](const auto&... column) { return std::vector<std::size_t>{column.size()...}; }, columns_);
    for (const std::size_t count : counts) {
      if (count == counts[0]) continue;
      throw InvalidArgument(
          "the batch handler returned a tuple of unequal batches: " + std::to_string(counts[0]) +
              " and " + std::to_string(count) + " rows",
          true);
    }
    return counts[0];
  }
  Row row(std::size_t i) {
    return std::apply([i](auto&... column) { return Row(column.row(i)...); }, columns_);
  }
  std::vector<Row> rows(std::size_t first, std::size_t count) {
    std::vector<Row> many;
    many.reserve(count);
    for (std::size_t i = first; i < first + count; ++i)
      many.push_back(row(i));
    return many;
  }

 private:
  template <std::size_t... I>
  BatchSplit(std::tuple<Stacked...>&& results, std::index_sequence<I...>)
      : columns_(BatchSplit<R, Stacked>(std::move(std::get<I>(results)))...) {}

  std::tuple<BatchSplit<R, Stacked>...> columns_;
};

}  // namespace batchrpc
