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

std::exception_ptr detail::not_null(std::exception_ptr error) {
  if (error) return error;
  return std::make_exception_ptr(
      InvalidArgument("the error is a null exception_ptr; pass an exception"));
}

}  // namespace batchrpc
