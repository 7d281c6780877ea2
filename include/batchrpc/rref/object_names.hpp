#pragma once

#include <string_view>

/// The names on the wire of the functions behind remote references; what follows a colon is the
/// name that people know.
namespace batchrpc::detail {

inline constexpr std::string_view kCreatePrefix = "batchrpc.create:";  ///< makes an object
inline constexpr std::string_view kOpenPrefix = "batchrpc.open:";      ///< has an object make one
inline constexpr std::string_view kMethodPrefix = "batchrpc.method:";
inline constexpr std::string_view kValuePrefix = "batchrpc.value:";  ///< copies an object
/// The library's own method of all objects: ready when they are constructed.
inline constexpr std::string_view kReady = "batchrpc.rref.ready";
inline constexpr std::string_view kShownReady = "ready()";  ///< as people know it

}  // namespace batchrpc::detail
