#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/exposed.hpp"

namespace batchrpc::detail {

/// A function that may be called with any of many signatures, such as an operator with overloads:
/// what answers calls of one is made when it is first called so. Exposed by Node::expose.
class BATCHRPC_EXPORT FunctionFamily : public ExposedFunction {
 public:
  /// Of those that were made, the `most` that were called last are kept; others are made anew.
  explicit FunctionFamily(std::string function_name, ExposeOptions how, std::size_t most = 8);
  ~FunctionFamily() override;

  std::shared_ptr<ExposedFunction> with_signature(std::string_view called_as) final;
  void take_back() noexcept final;
  /// Never called: calls go to what with_signature() gave.
  void run(RunningCall& call) noexcept final;

 private:
  /// The function for a signature that a peer chose, which may be any text: it has the family's
  /// name and options, and does not refer to the family. Throws BadSignature. Thread-safe; on a
  /// driving thread, which it does not keep waiting.
  [[nodiscard]] virtual std::shared_ptr<ExposedFunction> make(std::string_view called_as) const = 0;

  const std::size_t most_;
  std::mutex mutex_;
  std::list<std::shared_ptr<ExposedFunction>> made_;  // the last called first
};

}  // namespace batchrpc::detail
