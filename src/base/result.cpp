#include "batchrpc/base/result.hpp"

namespace batchrpc {

ErrorCode code_of(const std::exception_ptr& error) noexcept {
  if (!error) return ErrorCode::remote_error;
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code();
  } catch (...) {
    return ErrorCode::remote_error;
  }
}

}  // namespace batchrpc
