#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/profile/recording.hpp"

namespace batchrpc::profile {

/// The nodes that made or received calls, sorted by rank, and by name if ranks are equal.
class NodeList {
 public:
  struct Node {
    std::string name;
    int rank = -1;              // -1: not known; these come last
    std::uint64_t process = 0;  // 0: not known
  };

  explicit NodeList(const Recording& recording);

  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// The index of a node; the recording must have a call of it.
  [[nodiscard]] std::size_t index(std::string_view name) const { return index_.find(name)->second; }

 private:
  std::vector<Node> nodes_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace batchrpc::profile
