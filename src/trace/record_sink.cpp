#include "batchrpc/trace/record_sink.hpp"

namespace batchrpc::detail {

RecordSink::~RecordSink() = default;

std::size_t events_of(const CallRecord& record) noexcept {
  std::size_t events = 1 + record.operators.size();
  for (const CallRecord& call : record.calls)
    events += events_of(call);
  return events;
}

}  // namespace batchrpc::detail
