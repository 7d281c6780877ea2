#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/trace/record_sink.hpp"
#include "batchrpc/trace/trace_context.hpp"

namespace batchrpc::detail {

class CallRecording;

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Everything that has come with a call beside its arguments.
struct CallExtras final : Pooled, RefCounted<CallExtras> {
  TraceContext trace{};                        ///< not valid: none
  Metadata metadata{};                         ///< in the order in which they were sent
  std::shared_ptr<CallRecording> recording{};  ///< null: the call is not recorded
};

/// Everything that goes with a call that is made beside its arguments.
struct OutgoingExtras {
  TraceContext parent{};               ///< the call is a part of it; not valid: of nothing
  bool parent_is_call = false;         ///< the parent is a call that is recorded
  Metadata metadata{};                 ///< not checked against the limits yet
  bool inherits = false;               ///< CallOptions::inherit_metadata
  bool may_be_recorded = false;        ///< or continues a trace (CallTracer::complete)
  TimePoint started{};                 ///< when the call was made, if it may be recorded
  std::shared_ptr<RecordSink> sink{};  ///< null: the call is not recorded
};

}  // namespace batchrpc::detail
