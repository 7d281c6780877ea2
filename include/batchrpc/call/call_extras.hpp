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

/// What has come with a call beside its arguments.
struct CallExtras final : Pooled, RefCounted<CallExtras> {
  TraceContext trace{};                        ///< not valid: none
  Metadata metadata{};                         ///< in the order in which they were sent
  std::shared_ptr<CallRecording> recording{};  ///< null: the call is not recorded
};

/// What goes with a call that is made.
struct OutgoingExtras {
  TraceContext parent{};               ///< what the call is a part of; not valid: nothing
  bool parent_is_call = false;         ///< a call that is recorded
  Metadata metadata{};                 ///< within the limits or not
  bool inherits = false;               ///< CallOptions::inherit_metadata
  bool may_be_recorded = false;        ///< or goes on with a trace: CallTracer::complete
  TimePoint started{};                 ///< when it was called, if so
  std::shared_ptr<RecordSink> sink{};  ///< null: it is not recorded
};

}  // namespace batchrpc::detail
