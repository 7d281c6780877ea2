#include "profile/node_list.hpp"

#include <algorithm>
#include <tuple>

#include "profile/walk.hpp"

namespace batchrpc::profile {

NodeList::NodeList(const Recording& recording) {
  for_each_call(recording.calls, [&](const CallRecord& call, const CallRecord*) {
    for (const RecordedPlace* place : {&call.caller, &call.callee}) {
      auto found = index_.find(place->node);
      if (found == index_.end()) {
        found = index_.emplace(place->node, nodes_.size()).first;
        nodes_.push_back({.name = place->node});
      }
      Node& node = nodes_[found->second];
      if (node.rank < 0) node.rank = place->rank;
      if (node.process == 0) node.process = place->process;
    }
  });
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    if ((a.rank < 0) != (b.rank < 0)) return b.rank < 0;
    return std::tie(a.rank, a.name) < std::tie(b.rank, b.name);
  });
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    index_.find(nodes_[i].name)->second = i;
}

}  // namespace batchrpc::profile
