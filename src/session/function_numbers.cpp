#include "session/function_numbers.hpp"

#include "batchrpc/base/error.hpp"
#include "call/function_table.hpp"
#include "session/function_limits.hpp"

namespace batchrpc {

std::uint32_t FunctionNumbers::add(const detail::FunctionKey& function) {
  const std::size_t bytes = function.name.size() + function.signature.size();
  if (names_.size() >= kMaxFunctions || bytes_ + bytes > kMaxDefinitions) {
    throw InvalidArgument(
        "a session can call at most 65536 functions, whose names and signatures take at most 16 "
        "MiB together; use fewer functions, and pass as an argument what differs between them");
  }
  bytes_ += bytes;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(shown_name(function));
  last_ = *numbers_.emplace(function.hash, number).first;
  return number;
}

}  // namespace batchrpc
