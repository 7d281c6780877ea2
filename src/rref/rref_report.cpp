#include "batchrpc/rref/rref_report.hpp"

#include "rref/rref_parts.hpp"

namespace batchrpc {

RRefReport detail::report(const RrefParts& parts) {
  RRefReport report;
  report.owned = parts.objects->report();
  for (const auto& [owner, objects] : parts.references->count())
    report.used.push_back({.owner = owner, .objects = objects});
  report.in_flight = parts.references->in_flight();
  return report;
}

void detail::add_metrics(const RrefParts& parts, RRefMetrics& metrics) {
  const RRefReport all = report(parts);
  for (const OwnedRRefs& owned : all.owned) {
    metrics.owned.push_back({.name = owned.type,
                             .objects = owned.objects,
                             .holders = owned.holders.size(),
                             .waiting_calls = owned.waiting_calls});
  }
  for (const UsedRRefs& used : all.used)
    metrics.used.push_back({.name = used.owner, .objects = used.objects});
  metrics.in_flight = all.in_flight;
}

}  // namespace batchrpc
