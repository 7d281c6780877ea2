#pragma once

#include <array>
#include <string_view>

/// The names on the wire of the functions behind remote references. The part after a colon is the
/// name that users know.
namespace batchrpc::detail {

inline constexpr std::string_view kCreatePrefix = "batchrpc.create:";  ///< creates an object
inline constexpr std::string_view kOpenPrefix = "batchrpc.open:";      ///< has an object create one
inline constexpr std::string_view kMethodPrefix = "batchrpc.method:";
/// The prefixes of what a program exposes and users see by name.
inline constexpr std::array kShownPrefixes{kMethodPrefix, kCreatePrefix, kOpenPrefix};
inline constexpr std::string_view kValuePrefix = "batchrpc.value:";  ///< copies an object
/// The library's own method of all objects; its result is ready once the object is constructed.
inline constexpr std::string_view kReady = "batchrpc.rref.ready";
inline constexpr std::string_view kShownReady = "ready()";  ///< as shown to users

}  // namespace batchrpc::detail
