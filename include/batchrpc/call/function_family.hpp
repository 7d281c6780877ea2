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

/// A function that may be called with many signatures, such as an operator with overloads. The
/// function for a signature is made when it is first called with it. Node::expose exposes a family.
class BATCHRPC_EXPORT FunctionFamily : public ExposedFunction {
 public:
  /// Keeps the `most` functions that were called last. Others are made anew.
  explicit FunctionFamily(std::string function_name, ExposeOptions how, std::size_t most = 8);
  ~FunctionFamily() override;

  std::shared_ptr<ExposedFunction> with_signature(std::string_view called_as) final;
  void take_back() noexcept final;
  /// Never called, because calls go to the function that with_signature() returned.
  void run(RunningCall& call) noexcept final;

 private:
  /// Makes the function for a signature that a peer chose, which may be any text. The function has
  /// the family's name and options, and does not refer to the family. Throws BadSignature.
  /// Thread-safe. It runs on a driving thread, and must not block it.
  [[nodiscard]] virtual std::shared_ptr<ExposedFunction> make(std::string_view called_as) const = 0;

  const std::size_t most_;
  std::mutex mutex_;
  std::list<std::shared_ptr<ExposedFunction>> made_;  // the last called first
};

}  // namespace batchrpc::detail
