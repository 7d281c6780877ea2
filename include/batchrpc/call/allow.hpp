#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

struct PeerIdentity;

/// Which nodes may call an exposed function (ExposeOptions::allow). Other callers get
/// PermissionDenied, and the function does not see their arguments.
///
///     node.expose<&update>({.allow = {"learner", "actor*"}});
///     const auto is_root = [](const rpc::PeerIdentity& caller) { return caller.rank == 0; };
///     node.expose<&reset>({.allow = is_root});
class BATCHRPC_EXPORT Allow {
 public:
  /// Returns whether the node may call the function.
  using Rule = std::function<bool(const PeerIdentity& caller)>;

  /// Every node that can reach this one.
  Allow() = default;
  /// The nodes whose names match one of the patterns. In a pattern `*` stands for any number of
  /// characters, and `?` for one. Throws InvalidArgument for an empty pattern.
  Allow(std::initializer_list<std::string_view> names);
  /// The nodes for which `rule` returns true. It runs for each call, on the thread that reads the
  /// message, and must not block. A rule that throws allows nothing. Throws InvalidArgument for an
  /// empty std::function or a null pointer.
  template <class F>
  requires std::predicate<const F&, const PeerIdentity&> &&(!std::same_as<F, Allow>)Allow(F rule)
      : rule_(std::move(rule)) {
    check_not_empty();
  }

  /// Returns whether it allows every node without asking a rule.
  [[nodiscard]] bool is_everyone() const noexcept { return !rule_; }
  /// Returns whether the node may call the function.
  [[nodiscard]] bool allows(const PeerIdentity& caller) const noexcept;

 private:
  void check_not_empty() const;

  Rule rule_;
};

}  // namespace batchrpc
