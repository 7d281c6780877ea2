#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batcher.hpp"
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

/// B rows of one shape [d…], type and device become one tensor [B, d…], a copy. Rows that are
/// unlike the most common kind among them (unlike the first such, when there are several), or that
/// are undefined, fail with an InvalidArgument that names both kinds; the others go on.
template <>
struct BatchForm<at::Tensor> {
  using Stacked = at::Tensor;

  /// For each row, why it cannot be stacked with the others; empty when all can.
  BATCHRPC_EXPORT static std::vector<std::exception_ptr> misfits(
      const std::vector<const at::Tensor*>& rows);
  /// Throws InvalidArgument when rows differ.
  BATCHRPC_EXPORT static at::Tensor stack(std::vector<at::Tensor>&& rows);
};

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

}  // namespace detail

/// A tensor [B, d…] is B results [d…]: views of it, without a copy.
template <>
struct BatchSplit<at::Tensor, at::Tensor> {
  static std::size_t rows(const at::Tensor& results) { return detail::batch_size(results); }
  BATCHRPC_EXPORT static std::vector<at::Tensor> split(at::Tensor&& results);
};

/// A tensor [B] is B numbers: of integers (or bools) for an integral R, of any real numbers for a
/// floating point R, of bools for bool. What would lose more than precision, such as float32 for an
/// int or 300 for an int8_t, fails the batch with InvalidArgument.
template <class R>
requires std::is_arithmetic_v<R>
struct BatchSplit<R, at::Tensor> {
  static std::size_t rows(const at::Tensor& results) { return detail::batch_size(results); }
  static std::vector<R> split(at::Tensor&& results) {
    if constexpr (std::same_as<R, bool>) {
      return detail::bool_rows(results);
    } else if constexpr (std::floating_point<R>) {
      const std::vector<double> values = detail::floating_rows(results, "floating point numbers");
      std::vector<R> split;
      split.reserve(values.size());
      for (const double value : values)
        split.push_back(static_cast<R>(value));
      return split;
    } else {
      const std::vector<std::int64_t> values = detail::integer_rows(results, "integers");
      std::vector<R> split;
      split.reserve(values.size());
      for (const std::int64_t value : values) {
        if (!std::in_range<R>(value))
          detail::throw_out_of_range(value, sizeof(R) * 8, std::is_signed_v<R>);
        split.push_back(static_cast<R>(value));
      }
      return split;
    }
  }
};

/// A tuple of batches, tensors or vectors, is a batch of tuples: a handler of
/// `Batcher<std::tuple<at::Tensor, float>(at::Tensor)>` may return a tuple of a tensor [B, d…] and
/// a tensor [B].
template <class... R, class... Stacked>
requires(sizeof...(R) == sizeof...(Stacked) &&
         sizeof...(R) > 0) struct BatchSplit<std::tuple<R...>, std::tuple<Stacked...>> {
  using Row = std::tuple<R...>;

  static std::size_t rows(const std::tuple<Stacked...>& results) {
    return rows_at(results, std::index_sequence_for<R...>{});
  }
  static std::vector<Row> split(std::tuple<Stacked...>&& results) {
    return split_at(std::move(results), std::index_sequence_for<R...>{});
  }

 private:
  template <std::size_t... I>
  static std::size_t rows_at(const std::tuple<Stacked...>& results, std::index_sequence<I...>) {
    const std::size_t counts[] = {BatchSplit<R, Stacked>::rows(std::get<I>(results))...};
    for (const std::size_t count : counts) {
      if (count == counts[0]) continue;
      throw InvalidArgument("the batch handler returned a tuple of unequal batches: " +
                            std::to_string(counts[0]) + " and " + std::to_string(count) + " rows");
    }
    return counts[0];
  }
  template <std::size_t... I>
  static std::vector<Row> split_at(std::tuple<Stacked...>&& results, std::index_sequence<I...>) {
    auto columns =
        std::make_tuple(BatchSplit<R, Stacked>::split(std::move(std::get<I>(results)))...);
    std::vector<Row> result;
    const std::size_t count = std::get<0>(columns).size();
    result.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      result.emplace_back(std::move(std::get<I>(columns)[i])...);
    }
    return result;
  }
};

}  // namespace batchrpc
