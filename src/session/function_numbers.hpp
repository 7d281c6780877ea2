#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batchrpc/call/remote_call.hpp"

namespace batchrpc {

/// The numbers by which a peer knows the functions that this node calls there. Not thread-safe.
class FunctionNumbers {
 public:
  /// Returns the function's number, if it has one.
  [[nodiscard]] std::optional<std::uint32_t> find(const detail::FunctionKey& function) {
    if (last_.first == function.hash && !names_.empty()) return last_.second;
    const auto at = numbers_.find(function.hash);
    if (at == numbers_.end()) return std::nullopt;
    last_ = *at;
    return at->second;
  }
  /// Gives the function the next number. Throws InvalidArgument when there are too many.
  std::uint32_t add(const detail::FunctionKey& function);
  /// The function's name as users know it.
  [[nodiscard]] const std::string& name_of(std::uint32_t number) const { return names_[number]; }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by FunctionKey::hash
  std::pair<std::uint64_t, std::uint32_t> last_{};            // the entry that was used last
  std::vector<std::string> names_;                            // by number
  std::size_t bytes_ = 0;                                     // the bytes of names and signatures
};

}  // namespace batchrpc
