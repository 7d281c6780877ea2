#pragma once

#include <iosfwd>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// Which parts of a recording become spans.
struct OtlpOptions {
  bool operators = false;  ///< operators too, inside the callee's span
};

/// Writes a recording as OpenTelemetry spans in OTLP's JSON encoding. Each line is an
/// ExportTraceServiceRequest of one node. Collectors read it from a file ("OpenTelemetry Protocol
/// File Exporter", extension .jsonl) or take one line at a time by HTTP.
///
/// A call is two spans. The client's has the call's own id. The server's is its child and lasts
/// from when the call was received to when it was finished; its id is derived from the client's, so
/// that recordings of both sides agree. There is no server's span if the callee reported nothing.
/// Calls that the handler makes are children of the server's span. The client's span says whether
/// the call failed; if only the callee reported the call, the server's does. Phases are attributes
/// of the client's span, in nanoseconds: "batchrpc.phase.wire_ns". Calls without a valid context
/// have no spans.
///
/// `wall_clock_offset` is the time since 1970 minus the clock to which times are aligned: that of
/// the recording's node (see ClockAlignment). Profiler::export_otlp() knows it.
/// @{
[[nodiscard]] BATCHRPC_EXPORT std::string otlp(const Recording& recording,
                                               Duration wall_clock_offset,
                                               const OtlpOptions& options = {});
BATCHRPC_EXPORT void otlp(const Recording& recording, Duration wall_clock_offset, std::ostream& out,
                          const OtlpOptions& options = {});
/// @}

}  // namespace batchrpc
