#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/profile/otlp.hpp"
#include "batchrpc/profile/profile_table.hpp"
#include "batchrpc/profile/recording.hpp"

namespace batchrpc {

/// What a Profiler records.
struct ProfilerOptions {
  /// Records one in `sample` of the node's calls, chosen at random, with everything they cause. At
  /// least 1.
  std::uint64_t sample = 1;
  /// Also records LibTorch's operators where callees have batchrpc::torch.
  bool operators = true;
  /// Also records calls of other nodes that this node answers: its own side of them.
  bool answered = false;
  /// The number of calls and operators that are kept; the same number again for each peer that
  /// gather() asks, however often. Further ones are only counted; with 0, all of them. A call takes
  /// about half a KiB, an operator a tenth of one.
  std::size_t max_events = 500'000;
};

/// Records the calls that a node makes during the profiler's life, and their effects elsewhere:
///
///     batchrpc::Profiler profiler(node);
///     auto sum = node.call<at::Tensor(at::Tensor, at::Tensor)>("worker1", "aten::add", t1, t2);
///     sum.get();
///     std::cout << profiler.key_averages().table();
///     profiler.export_chrome_trace("trace.json");
///
/// For each call it records when it passed each phase on both sides (docs/profiling.md), the
/// operators that the callee ran for it, its batch, and the calls that its handler made, with
/// theirs. All of this comes with the reply, so work that a handler starts and that continues after
/// the reply is not recorded. A call is recorded when it ends, before its future is ready.
///
/// Several profilers of one node each record all of its calls. A profiler may outlive its node. All
/// functions are thread-safe.
class BATCHRPC_EXPORT Profiler {
 public:
  /// Starts recording. Throws InvalidArgument for options out of range.
  explicit Profiler(const Node& node, const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Stops recording calls made from now on; calls in flight are still recorded. Calling it again
  /// does nothing.
  void stop();

  /// Collects the records of the running profilers on all other nodes of the group that are not
  /// lost, so that the trace has the calls of all of them. For each node, the first `max_events`
  /// records of all gathers together are kept. The rest is counted, once for each profiler there
  /// that has it. Blocks for at most `timeout`.
  ///
  /// Returns the nodes that did not answer, each with the reason: "worker1: ...". A node without a
  /// profiler answers with an empty recording. Throws InvalidArgument for a time-out that is not
  /// above zero, and ShutDown when the node has been shut down or destroyed.
  std::vector<std::string> gather(Duration timeout = std::chrono::seconds(10));

  /// The records so far, with the gathered ones.
  [[nodiscard]] Recording recording() const;
  /// Returns a table of calls and operators by name.
  [[nodiscard]] ProfileTable key_averages() const;

  /// Writes a trace for https://ui.perfetto.dev and chrome://tracing. The file appears, or replaces
  /// an older one, when it is complete. If it cannot be written, throws InvalidArgument with the
  /// reason.
  void export_chrome_trace(const std::string& path) const;
  /// Writes OpenTelemetry spans as OTLP/JSON, like OpenTelemetry's file exporter. Files and errors
  /// as for export_chrome_trace().
  void export_otlp(const std::string& path, const OtlpOptions& options = {}) const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace batchrpc
