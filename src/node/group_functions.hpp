#pragma once

#include <string_view>

#include "batchrpc/call/remote_call.hpp"

/// The reserved functions of a group (docs/wire.md).
namespace batchrpc::group_functions {

inline constexpr std::string_view kWho = "batchrpc.who";
inline constexpr std::string_view kJoin = "batchrpc.join";
inline constexpr std::string_view kMembers = "batchrpc.members";
inline constexpr std::string_view kJoined = "batchrpc.joined";
inline constexpr std::string_view kLeft = "batchrpc.left";
inline constexpr std::string_view kDone = "batchrpc.done";
inline constexpr std::string_view kReportQuiet = "batchrpc.report_quiet";
inline constexpr std::string_view kQuiet = "batchrpc.quiet";
inline constexpr std::string_view kEnd = "batchrpc.end";

template <class R, class... Args>
detail::FunctionKey key_of(std::string_view name) {
  return detail::function_key(name, signature<R, Args...>());
}

}  // namespace batchrpc::group_functions
