#include "batchrpc/trace/record_sink.hpp"

namespace batchrpc::detail {

RecordSink::~RecordSink() = default;

std::size_t events_of(const CallRecord& record) noexcept {
  std::size_t events = 1 + record.operators.size();
  for (const CallRecord& call : record.calls)
    events += events_of(call);
  return events;
}

std::uint64_t all_events_of(const CallRecord& record) noexcept {
  std::uint64_t events = 1 + record.operators.size() + record.left_out;
  for (const CallRecord& call : record.calls)
    events += all_events_of(call);
  return events;
}

void leave_out_caused(CallRecord& record) noexcept {
  record.left_out = all_events_of(record) - 1;
  record.operators.clear();
  record.calls.clear();
}

void leave_out_operators(CallRecord& record) noexcept {
  record.operators.clear();
  for (CallRecord& call : record.calls)
    leave_out_operators(call);
}

}  // namespace batchrpc::detail
