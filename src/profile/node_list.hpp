#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/profile/recording.hpp"

namespace batchrpc::profile {

/// The nodes that calls are from and to, by rank, and those of one rank by name.
class NodeList {
 public:
  struct Node {
    std::string name;
    int rank = -1;              // -1: not known; those come last
    std::uint64_t process = 0;  // 0: not known
  };

  explicit NodeList(const Recording& recording);

  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// Where a node is of which the recording has a call.
  [[nodiscard]] std::size_t index(std::string_view name) const { return index_.find(name)->second; }

 private:
  std::vector<Node> nodes_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace batchrpc::profile
