#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/batch/row_memory.hpp"
#include "batchrpc/torch/tensor.hpp"

/// Tensors in batches: rows are stacked to [B, …], results split along their first dimension.
///
///     batchrpc::Batcher<std::int64_t(at::Tensor)> select_action(
///         {.max_size = 64}, [&](at::Tensor states /* [B, 4] */) {
///           return policy.sample(states);  // int64 [B]
///         });
///
/// Rows of other types stay `std::vector`s, so a handler may take both:
/// `Batcher<at::Tensor(at::Tensor, int)>` has a handler of (at::Tensor, std::vector<int>).
namespace batchrpc {
namespace detail {
class TensorSlabs;
}

/// B rows of one shape [d…], type and device become one tensor [B, d…]; rows of different ones go
/// into different batches, unless BatchRules::key says otherwise: then those that are unlike most
/// others fail with an InvalidArgument that names both. An undefined tensor fails so at once. A
/// caller of many sends [k, d…].
///
/// The batch is the handler's: it may keep it, and change it. It is a copy of the rows, made once;
/// where they carry an autograd graph (rows of this process), the graph goes on. Large rows of
/// peers are received where the batch then is, without a copy.
template <>
struct BatchTraits<at::Tensor> {
  using Stacked = at::Tensor;

  /// Gives rows of peers memory in which they lie as in a batch. Thread-safe.
  class BATCHRPC_EXPORT Receiver {
   public:
    Receiver();
    /// For a row of that many bytes, in a piece of memory for so many rows; pieces for rows that
    /// wait, of whatever sizes, are `limit` bytes at the most.
    [[nodiscard]] detail::RowMemory take(std::size_t bytes, std::size_t rows,
                                         const std::string& device, std::size_t limit) const;

   private:
    std::shared_ptr<detail::TensorSlabs> slabs_;
  };
  /// What of a row is there before its payload is.
  using Announced = detail::TensorHeader;
  /// Its payload; none has no bytes. Throws BadMessage.
  static detail::AnnouncedPayload announced(const detail::TensorHeader& row) {
    return {row.payload, detail::bytes_of(row)};
  }

  /// Stacks, as BatchTraits<T>::Builder does. Throws InvalidArgument when rows differ.
  class BATCHRPC_EXPORT Builder {
   public:
    /// Of so many rows, padding included.
    Builder(std::size_t rows, const detail::Stacking& how) : rows_(rows), how_(how) {}
    /// The next row, [d…].
    void add(at::Tensor&& row);
    /// The next rows, [k, d…].
    void add_all(at::Tensor&& rows);
    /// All rows and the padding, [B, d…].
    at::Tensor finish(std::size_t padding);

   private:
    struct Part {
      at::Tensor tensor;
      bool many;
    };
    void require_one_kind() const;
    [[nodiscard]] bool on_graph() const;
    [[nodiscard]] at::Tensor where_received(std::size_t padding) const;
    [[nodiscard]] at::Tensor join(std::size_t padding) const;
    [[nodiscard]] at::Tensor copy(std::size_t padding) const;

    std::size_t rows_;
    detail::Stacking how_;
    std::vector<Part> parts_;
    std::size_t real_rows_ = 0;
  };

  /// Throws InvalidArgument unless LibTorch has such a device here.
  BATCHRPC_EXPORT static void check_device(const std::string& device);
  /// Where a row lies that was received into the memory of a Receiver; null for others.
  BATCHRPC_EXPORT static const void* place(const at::Tensor& row);
  /// Whether one such row lies right behind another.
  BATCHRPC_EXPORT static bool adjacent(const at::Tensor& row, const at::Tensor& next);
  BATCHRPC_EXPORT static std::size_t rows(const at::Tensor& stacked);
  BATCHRPC_EXPORT static at::Tensor row(const at::Tensor& stacked, std::size_t index);
  BATCHRPC_EXPORT static at::Tensor repeat(const at::Tensor& value, std::size_t rows);
  BATCHRPC_EXPORT static std::size_t bytes(const at::Tensor& row);
  static std::size_t bytes_of_all(const at::Tensor& rows) { return bytes(rows); }
  BATCHRPC_EXPORT static void append_kind(const at::Tensor& row, std::string& kind);
  BATCHRPC_EXPORT static void append_kind_of_all(const at::Tensor& rows, std::string& kind);
  static std::string describe(const at::Tensor& row) { return detail::describe_tensor(row); }
};

/// For BatchRules::check: throws an InvalidArgument that names what was expected and what came,
/// unless `row` is of that type and of the sizes [d…]; a size of -1 is any.
BATCHRPC_EXPORT void require_row(const at::Tensor& row, at::ScalarType type,
                                 std::vector<std::int64_t> sizes);

namespace detail {

/// The first dimension of a batch of results. Throws InvalidArgument for an undefined tensor or one
/// without dimensions.
[[nodiscard]] BATCHRPC_EXPORT std::size_t batch_size(const at::Tensor& results);

/// The values of an integer or bool tensor [B]. Throws InvalidArgument that names `wanted`.
[[nodiscard]] BATCHRPC_EXPORT std::vector<std::int64_t> integer_rows(const at::Tensor& results,
                                                                     const char* wanted);
/// The values of a floating point, integer or bool tensor [B].
[[nodiscard]] BATCHRPC_EXPORT std::vector<double> floating_rows(const at::Tensor& results,
                                                                const char* wanted);
[[nodiscard]] BATCHRPC_EXPORT std::vector<bool> bool_rows(const at::Tensor& results);
[[noreturn]] BATCHRPC_EXPORT void throw_out_of_range(std::int64_t value, std::size_t bits,
                                                     bool is_signed);

template <class R>
std::vector<R> number_rows(const at::Tensor& results) {
  if constexpr (std::same_as<R, bool>) {
    return bool_rows(results);
  } else if constexpr (std::same_as<R, double>) {
    return floating_rows(results, "floating point numbers");
  } else if constexpr (std::same_as<R, std::int64_t>) {
    return integer_rows(results, "integers");
  } else if constexpr (std::floating_point<R>) {
    const std::vector<double> values = floating_rows(results, "floating point numbers");
    std::vector<R> rows;
    rows.reserve(values.size());
    for (const double value : values)
      rows.push_back(static_cast<R>(value));
    return rows;
  } else {
    const std::vector<std::int64_t> values = integer_rows(results, "integers");
    std::vector<R> rows;
    rows.reserve(values.size());
    for (const std::int64_t value : values) {
      if (!std::in_range<R>(value)) throw_out_of_range(value, sizeof(R) * 8, std::is_signed_v<R>);
      rows.push_back(static_cast<R>(value));
    }
    return rows;
  }
}

}  // namespace detail

/// A tensor [B, d…] is B results [d…], or [k, d…] for a caller of k rows: views of it, without a
/// copy.
template <>
class BATCHRPC_EXPORT BatchSplit<at::Tensor, at::Tensor> {
 public:
  explicit BatchSplit(at::Tensor&& results)
      : size_(detail::batch_size(results)), results_(std::move(results)) {}
  [[nodiscard]] std::size_t size() const { return size_; }
  at::Tensor row(std::size_t i);
  [[nodiscard]] at::Tensor rows(std::size_t first, std::size_t count) const;

 private:
  std::size_t size_;
  at::Tensor results_;
  std::vector<at::Tensor> rows_;  // when one was asked for
};

/// A tensor [B] is B numbers: of integers (or bools) for an integral R, of any real numbers for a
/// floating point R, of bools for bool. What would lose more than precision, such as float32 for an
/// int or 300 for an int8_t, fails the batch with InvalidArgument.
template <class R>
requires std::is_arithmetic_v<R>
class BatchSplit<R, at::Tensor> : public BatchSplit<R, std::vector<R>> {
 public:
  explicit BatchSplit(at::Tensor&& results) : BatchSplit<R, std::vector<R>>(checked(results)) {}

 private:
  static std::vector<R> checked(const at::Tensor& results) {
    (void)detail::batch_size(results);
    return detail::number_rows<R>(results);
  }
};

}  // namespace batchrpc
