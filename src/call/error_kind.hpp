#pragma once

#include <exception>
#include <string>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"

namespace batchrpc::detail {

/// Names an error as CallRecord::error does: "TimedOut". For an exception of a function, this is
/// "RemoteError: std::out_of_range" at its caller, and "std::out_of_range" where it ran.
inline std::string kind_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RemoteError& remote) {
    return std::string("RemoteError: ") + remote.type();
  } catch (const Error& known) {
    return std::string(to_string(known.code()));
  } catch (...) {
    return type_name(error);
  }
}

}  // namespace batchrpc::detail
