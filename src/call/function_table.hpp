#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/call/exposed.hpp"

namespace batchrpc {

/// What the names of the library's own functions begin with; those of methods and constructors
/// behind remote references (rref.hpp) go on with the name that people know.
inline constexpr std::string_view kReservedPrefix = "batchrpc.";
inline constexpr std::string_view kMethodPrefix = "batchrpc.method:";
inline constexpr std::string_view kCreatePrefix = "batchrpc.create:";
inline constexpr std::string_view kReadyFunction = "batchrpc.rref.ready";
inline constexpr std::string_view kOpenPrefix = "batchrpc.open:";

/// What a node has exposed, by name. Thread-safe.
class FunctionTable {
 public:
  /// Throws InvalidArgument when the name is taken or empty.
  void add(std::shared_ptr<detail::ExposedFunction> function);
  /// Calls under way finish. Returns whether there was one.
  bool remove(std::string_view name);

  /// Throws NotFound (with near names) or BadSignature (with both signatures). `node` is for the
  /// message.
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> resolve(std::string_view name,
                                                                 std::string_view signature,
                                                                 std::string_view node) const;
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> find(std::string_view name) const;
  /// In order.
  [[nodiscard]] std::vector<std::string> names() const;
  void clear();

 private:
  [[nodiscard]] std::string why_not_found(std::string_view name, std::string_view node) const;
  [[nodiscard]] std::vector<std::string> shown_names_like(std::string_view name) const;

  using Map = std::map<std::string, std::shared_ptr<detail::ExposedFunction>, std::less<>>;

  mutable std::shared_mutex mutex_;
  Map functions_;
};

/// Whether a function is one of the library's own, such as those that release references: not of
/// names such as "batchrpc.method:Class::f", which are the program's.
[[nodiscard]] inline bool is_of_library(std::string_view name) noexcept {
  return name.starts_with(kReservedPrefix) && name.find(':') == std::string_view::npos;
}

/// `name` as people know it: without what marks a method or constructor behind a remote reference.
[[nodiscard]] std::string_view shown_name(std::string_view name);

/// As it is counted: the library's own together.
[[nodiscard]] std::string_view counted_name(std::string_view name);

/// The signature of a function of that name without the ids that the library's own take first.
[[nodiscard]] std::string shown_signature(std::string_view name, std::string_view signature);

/// Those of `candidates` that a person may have meant by `name`, as a text such as "did you mean
/// 'add'?"; empty if there are none.
[[nodiscard]] std::string suggest(std::string_view name,
                                  const std::vector<std::string>& candidates);

}  // namespace batchrpc
