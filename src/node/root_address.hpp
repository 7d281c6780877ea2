#pragma once

#include <string>
#include <utility>

#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// Chooses the address by which a node tries to reach the root of its group: that of
/// NodeOptions::join or, once the root has announced its addresses, a better one such as a Unix
/// socket. Not thread-safe.
class RootAddress {
 public:
  /// `options` must outlive this.
  explicit RootAddress(const NodeOptions& options) noexcept : options_(options) {}

  /// Returns the address to try now; empty if the root has not written its join file.
  [[nodiscard]] std::string choose() const;

  /// Remembers the address that is tried, for messages.
  void set_tried(std::string address) { tried_ = std::move(address); }
  /// Returns the address that was tried last; empty if there is none.
  [[nodiscard]] const std::string& tried() const noexcept { return tried_; }
  /// Whether to warn that no batchrpc node answers at tried(). Not twice in a row for one address.
  [[nodiscard]] bool is_to_be_warned_of() { return std::exchange(warned_of_, tried_) != tried_; }

  /// Whether to try a better address. False after several failed tries.
  [[nodiscard]] bool takes_nearer() const noexcept { return nearer_tries_ < kNearerTries; }
  /// Uses `address`, which is better, from now on.
  void use_nearer(std::string address);
  /// Uses the address of the options again.
  void forget_nearer() noexcept { nearer_.clear(); }
  /// The same, and better addresses may be tried again.
  void reset() noexcept;

 private:
  static constexpr int kNearerTries = 3;

  const NodeOptions& options_;
  std::string tried_;
  std::string warned_of_;
  std::string nearer_;  // if empty, the address of the options is used
  int nearer_tries_ = 0;
};

}  // namespace batchrpc
