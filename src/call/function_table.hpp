#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/function_kind.hpp"
#include "call/suggestions.hpp"

namespace batchrpc {

/// The prefix of the names of the library's own functions. A layer that renames the program's
/// functions puts its kind before them: "batchrpc.kind:name".
inline constexpr std::string_view kReservedPrefix = "batchrpc.";

/// The functions that a node has exposed, by name. Thread-safe.
class FunctionTable {
 public:
  /// Sets how functions of that kind are named, ordered and explained.
  void add_kind(const detail::FunctionKind& kind);
  /// Returns the kind of a function of that name, exposed or not.
  [[nodiscard]] detail::FunctionKind kind_of(std::string_view name) const;
  /// Returns the name as users know it.
  [[nodiscard]] std::string shown(std::string_view name) const;
  /// Returns the signature of a function of that name without the parameters that its kind puts
  /// first.
  [[nodiscard]] std::string shown_signature(std::string_view name,
                                            std::string_view signature) const;
  /// Like batchrpc::suggest, comparing the part of the names that matters for their kinds.
  [[nodiscard]] std::string suggest(std::string_view name,
                                    const std::vector<std::string>& candidates) const;

  /// Adds the function, and its kind. Throws InvalidArgument when the name is taken or empty.
  void add(std::shared_ptr<detail::ExposedFunction> function);
  /// Removes the function. Calls in progress finish. Returns whether there was one.
  bool remove(std::string_view name);

  /// Throws NotFound or BadSignature (with both signatures). NotFound suggests similar names, but
  /// not at any rate: peers may ask without end. `node` is for the message.
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> resolve(std::string_view name,
                                                                 std::string_view signature,
                                                                 std::string_view node,
                                                                 TimePoint now) const;
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> find(std::string_view name) const;
  /// Whether something else is exposed under that name: a method, for example, that was called as
  /// a function.
  [[nodiscard]] bool is_used_otherwise(std::string_view name) const;
  /// Returns the names, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  void clear();

 private:
  [[nodiscard]] std::string why_not_found(std::string_view name, std::string_view node,
                                          TimePoint now) const;
  [[nodiscard]] std::string_view used_as(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> shown_names_like(std::string_view name) const;

  using Map = std::map<std::string, std::shared_ptr<detail::ExposedFunction>, std::less<>>;

  mutable std::shared_mutex mutex_;
  Map functions_;
  std::vector<detail::FunctionKind> kinds_;
  mutable SuggestionRate suggestion_rate_;
};

/// Whether a function is one of the library's own, such as those that release references. Names
/// such as "batchrpc.kind:name" are the program's.
[[nodiscard]] inline bool is_of_library(std::string_view name) noexcept {
  return name.starts_with(kReservedPrefix) && name.find(':') == std::string_view::npos;
}

/// Returns `name` as users know it: without the kind before it.
/// @{
[[nodiscard]] std::string_view shown_name(std::string_view name);
[[nodiscard]] inline std::string_view shown_name(const detail::FunctionKey& function) {
  return function.shown.empty() ? shown_name(function.name) : function.shown;
}
/// @}

/// Returns the name under which calls are counted. All functions of the library have the same one.
[[nodiscard]] std::string_view counted_name(std::string_view name);

/// Whether the parameters of `signature` begin with `parameter`.
[[nodiscard]] bool begins_with(std::string_view signature, std::string_view parameter);

}  // namespace batchrpc
