#pragma once

#include <string>
#include <utility>

#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

/// Chooses the address by which a node tries to reach the root of its group: the one of
/// NodeOptions::join, or a better one, such as a Unix socket, once the root has said
/// how it can be reached. Not
/// thread-safe.
class RootAddress {
 public:
  /// `options` must outlive this.
  explicit RootAddress(const NodeOptions& options) noexcept : options_(options) {}

  /// The address to try now; empty: the root has not written its join file.
  [[nodiscard]] std::string choose() const;

  /// Remembers what is tried, for messages.
  void set_tried(std::string address) { tried_ = std::move(address); }
  /// The address that was tried last; empty: none.
  [[nodiscard]] const std::string& tried() const noexcept { return tried_; }
  /// Whether to warn that no batchrpc node answers at tried(): not twice in a row of one address.
  [[nodiscard]] bool is_to_be_warned_of() { return std::exchange(warned_of_, tried_) != tried_; }

  /// Whether a better address is worth a try: not when it has failed several times.
  [[nodiscard]] bool takes_nearer() const noexcept { return nearer_tries_ < kNearerTries; }
  /// Chooses `address`, which is better, from now on.
  void use_nearer(std::string address);
  /// Goes back to the address of the options.
  void forget_nearer() noexcept { nearer_.clear(); }
  /// The same, and better addresses may be tried again.
  void reset() noexcept;

 private:
  static constexpr int kNearerTries = 3;

  const NodeOptions& options_;
  std::string tried_;
  std::string warned_of_;
  std::string nearer_;  // empty: the address of the options is used
  int nearer_tries_ = 0;
};

}  // namespace batchrpc
