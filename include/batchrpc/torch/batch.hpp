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

/// Tensors in batches: rows are stacked to [B, …], results are split along their first dimension.
///
///     batchrpc::Batcher<std::int64_t(at::Tensor)> select_action(
///         {.max_size = 64}, [&](at::Tensor states /* [B, 4] */) {
///           return policy.sample(states);  // int64 [B]
///         });
///
/// Rows of other types are passed as `std::vector`s, so a handler may take both.
/// The handler of `Batcher<at::Tensor(at::Tensor, int)>` takes (at::Tensor, std::vector<int>).
namespace batchrpc {
namespace detail {
class TensorSlabs;
}

/// Stacks B rows of one shape [d…], type and device to one tensor [B, d…]. Rows that differ go into
/// different batches, unless BatchRules::key puts them together. Then those that differ from the
/// majority fail with an InvalidArgument that describes both. An undefined tensor fails at once in
/// the same way. A call of several rows passes [k, d…].
///
/// The handler owns the batch: it may keep and change it. The batch is a copy of the rows, made
/// once. If rows carry an autograd graph (rows of this process), the graph continues through it.
/// Large rows of peers are received directly into the batch's memory, without a copy.
template <>
struct BatchTraits<at::Tensor> {
  using Stacked = at::Tensor;

  /// Provides memory in which the rows of peers lie as in a batch. Thread-safe.
  class BATCHRPC_EXPORT Receiver {
   public:
    Receiver();
    /// Returns memory for a row of `bytes` bytes, in a slab for `rows` rows. The slabs of all
    /// waiting rows, whatever their sizes, take at most `limit` bytes.
    [[nodiscard]] detail::RowMemory take(std::size_t bytes, std::size_t rows,
                                         const std::string& device, std::size_t limit) const;

   private:
    std::shared_ptr<detail::TensorSlabs> slabs_;
  };
  /// The part of a row that arrives before its payload.
  using Announced = detail::TensorHeader;
  /// The announced payload; one without bytes if the row has none. Throws BadMessage.
  static detail::AnnouncedPayload announced(const detail::TensorHeader& row) {
    if (row.layout != detail::TensorLayout::dense) return {};  // it will be refused as a row
    return {row.payload, detail::bytes_of(row)};
  }

  /// Stacks rows, like BatchTraits<T>::Builder. Throws InvalidArgument if rows differ.
  class BATCHRPC_EXPORT Builder {
   public:
    /// `rows` counts all rows, including padding.
    Builder(std::size_t rows, const detail::Stacking& how) : rows_(rows), how_(how) {}
    /// Adds the next row, [d…].
    void add(at::Tensor&& row);
    /// Adds the next rows, [k, d…].
    void add_all(at::Tensor&& rows);
    /// Returns all rows and the padding, [B, d…].
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

  /// Throws InvalidArgument if LibTorch has no such device here.
  BATCHRPC_EXPORT static void check_device(const std::string& device);
  /// The address of a row that was received into a Receiver's memory; null for other rows.
  BATCHRPC_EXPORT static const void* place(const at::Tensor& row);
  /// Whether `next` lies directly behind `row` in such memory.
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

/// For BatchRules::check: throws InvalidArgument unless `row` has that type and the sizes [d…]. The
/// message describes the expected and the actual row. A size of -1 allows any.
BATCHRPC_EXPORT void require_row(const at::Tensor& row, at::ScalarType type,
                                 std::vector<std::int64_t> sizes);

namespace detail {

/// The first dimension of a batch of results. Throws InvalidArgument if the tensor is undefined or
/// has no dimensions.
[[nodiscard]] BATCHRPC_EXPORT std::size_t batch_size(const at::Tensor& results);

/// The values of an integer or bool tensor [B]. For another tensor, throws an InvalidArgument that
/// names `wanted`.
[[nodiscard]] BATCHRPC_EXPORT std::vector<std::int64_t> integer_rows(const at::Tensor& results,
                                                                     const char* wanted);
/// The values of a floating-point, integer or bool tensor [B].
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
    return floating_rows(results, "floating-point numbers");
  } else if constexpr (std::same_as<R, std::int64_t>) {
    return integer_rows(results, "integers");
  } else if constexpr (std::floating_point<R>) {
    const std::vector<double> values = floating_rows(results, "floating-point numbers");
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

/// Splits a tensor [B, d…] into B results [d…], or [k, d…] for a call of k rows. They are views,
/// without a copy.
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
  std::vector<at::Tensor> rows_;  // filled when a single row is first taken
};

/// Splits a tensor [B] into B numbers. An integral R needs integers or bools, a floating-point R
/// any real numbers, bool needs bools. If a conversion would lose more than precision (float32 to
/// int, or 300 to int8_t), the batch fails with InvalidArgument.
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

// The library has the code of the most common batcher, so that programs need not compile it.
namespace detail {
extern template class BATCHRPC_EXPORT TypedCall<at::Tensor, at::Tensor>;
extern template class BATCHRPC_EXPORT SharedReply<at::Tensor>;
extern template class BATCHRPC_EXPORT LocalReply<at::Tensor>;
extern template class BATCHRPC_EXPORT RemoteReply<at::Tensor>;
extern template class BATCHRPC_EXPORT AnsweredCall<LocalReply<at::Tensor>, at::Tensor, at::Tensor>;
extern template class BATCHRPC_EXPORT AnsweredCall<RemoteReply<at::Tensor>, at::Tensor, at::Tensor>;
extern template class BATCHRPC_EXPORT TypedRun<at::Tensor, at::Tensor>;
extern template class BATCHRPC_EXPORT BatcherState<at::Tensor, at::Tensor>;
}  // namespace detail
extern template class BATCHRPC_EXPORT Batcher<at::Tensor(at::Tensor)>;
extern template class BATCHRPC_EXPORT detail::TypedFunction<
    Batcher<at::Tensor(at::Tensor)>, detail::FunctionTraits<Batcher<at::Tensor(at::Tensor)>>>;

}  // namespace batchrpc
