#include "batchrpc/rref/rref_report.hpp"

#include "batchrpc/node/node.hpp"
#include "node/node_core.hpp"
#include "rref/rref_parts.hpp"

namespace batchrpc {

RRefReport Node::rrefs() const {
  const auto parts = live_core().extension<detail::RrefParts>();
  RRefReport report;
  report.owned = parts->objects->report();
  for (const auto& [owner, objects] : parts->references->count())
    report.used.push_back({.owner = owner, .objects = objects});
  report.in_flight = parts->references->in_flight();
  return report;
}

}  // namespace batchrpc
