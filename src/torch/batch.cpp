#include "batchrpc/torch/batch.hpp"

#include <ATen/ATen.h>

#include <memory>

namespace batchrpc {
namespace {

bool stacks_with(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.device() == b.device() &&
         a.layout() == b.layout();
}

// The most common kind among the rows that are defined, the first one of equally common ones; null
// when there is none. Rows of one kind, the usual case, take one pass.
const at::Tensor* most_common(const std::vector<const at::Tensor*>& rows) {
  struct Kind {
    const at::Tensor* example;
    std::size_t count;
  };
  std::vector<Kind> kinds;
  for (const at::Tensor* row : rows) {
    if (!row->defined()) continue;
    bool known = false;
    for (Kind& kind : kinds) {
      if (!stacks_with(*kind.example, *row)) continue;
      ++kind.count;
      known = true;
      break;
    }
    if (!known) kinds.push_back({row, 1});
  }
  const Kind* best = nullptr;
  for (const Kind& kind : kinds) {
    if (best == nullptr || kind.count > best->count) best = &kind;
  }
  return best == nullptr ? nullptr : best->example;
}

InvalidArgument misfit(const at::Tensor* expected, const at::Tensor& row) {
  const std::string got = detail::describe_tensor(row);
  if (expected == nullptr) return InvalidArgument("a row of a batch is " + got);
  return InvalidArgument("a row of a batch is " + got + ", but the others are " +
                         detail::describe_tensor(*expected) +
                         "; all rows have one shape, type and device");
}

at::Tensor as_column(const at::Tensor& results, bool good_type, c10::ScalarType type,
                     const char* wanted) {
  if (results.dim() != 1 || !good_type) {
    throw InvalidArgument("the batch handler returned " + detail::describe_tensor(results) +
                          ", but its rows are " + wanted + ": return a tensor of those, [" +
                          std::to_string(results.size(0)) + "]");
  }
  return results.detach().to(c10::kCPU, type).contiguous();
}

template <class T>
std::vector<T> values_of(const at::Tensor& column) {
  const T* const first = column.data_ptr<T>();
  return std::vector<T>(first, first + column.numel());
}

}  // namespace

std::vector<std::exception_ptr> BatchForm<at::Tensor>::misfits(
    const std::vector<const at::Tensor*>& rows) {
  const at::Tensor* const expected = most_common(rows);
  std::vector<std::exception_ptr> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->defined() && stacks_with(*expected, *rows[i])) continue;
    errors.resize(rows.size());
    errors[i] = std::make_exception_ptr(misfit(expected, *rows[i]));
  }
  return errors;
}

at::Tensor BatchForm<at::Tensor>::stack(std::vector<at::Tensor>&& rows) {
  if (rows.empty()) throw InvalidArgument("a batch without rows");
  for (const at::Tensor& row : rows) {
    if (!row.defined() || !rows[0].defined() || !stacks_with(rows[0], row)) {
      throw misfit(rows[0].defined() ? &rows[0] : nullptr, row);
    }
  }
  return at::stack(rows);
}

std::vector<at::Tensor> BatchSplit<at::Tensor, at::Tensor>::split(at::Tensor&& results) {
  return results.unbind(0);
}

namespace detail {

std::size_t batch_size(const at::Tensor& results) {
  if (!results.defined() || results.dim() == 0) {
    throw InvalidArgument("the batch handler returned " + describe_tensor(results) +
                          ": its first dimension is to be the batch");
  }
  return static_cast<std::size_t>(results.size(0));
}

std::vector<std::int64_t> integer_rows(const at::Tensor& results, const char* wanted) {
  const bool good = c10::isIntegralType(results.scalar_type(), /*includeBool=*/true);
  return values_of<std::int64_t>(as_column(results, good, c10::kLong, wanted));
}

std::vector<double> floating_rows(const at::Tensor& results, const char* wanted) {
  const bool good = c10::isIntegralType(results.scalar_type(), /*includeBool=*/true) ||
                    c10::isFloatingType(results.scalar_type());
  return values_of<double>(as_column(results, good, c10::kDouble, wanted));
}

std::vector<bool> bool_rows(const at::Tensor& results) {
  const bool good = results.scalar_type() == c10::kBool;
  return values_of<bool>(as_column(results, good, c10::kBool, "bools"));
}

void throw_out_of_range(std::int64_t value, std::size_t bits, bool is_signed) {
  throw InvalidArgument(
      "the batch handler returned " + std::to_string(value) + ", which is beyond the rows' type, " +
      (is_signed ? "a signed" : "an unsigned") + " integer of " + std::to_string(bits) + " bits");
}

}  // namespace detail
}  // namespace batchrpc
