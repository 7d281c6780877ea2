#include "batchrpc/trace/record_sink.hpp"

namespace batchrpc::detail {

RecordSink::~RecordSink() = default;

std::size_t events_of(const CallRecord& record) noexcept {
  std::size_t events = 1 + record.operators.size();
  for (const CallRecord& call : record.calls)
    events += events_of(call);
  return events;
}

void leave_out_operators(CallRecord& record) noexcept {
  record.operators.clear();
  for (CallRecord& call : record.calls)
    leave_out_operators(call);
}

}  // namespace batchrpc::detail
