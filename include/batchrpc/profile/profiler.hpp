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
  /// One in so many of the node's calls, by chance, with all that it causes; from 1 on.
  std::uint64_t sample = 1;
  /// The operators of LibTorch, too, where callees have batchrpc::torch.
  bool operators = true;
  /// The calls of others, too, that the node answers: of these, its own side.
  bool answered = false;
  /// So many calls and operators are kept, and again of each peer that is gathered from, however
  /// often; further ones are counted, with 0 all of them. A call takes about half a KiB, an
  /// operator a tenth of one.
  std::size_t max_events = 500'000;
};

/// Records the calls that a node makes while it is there, and what these cause elsewhere:
///
///     batchrpc::Profiler profiler(node);
///     auto sum = node.call<at::Tensor(at::Tensor, at::Tensor)>("worker1", "aten::add", t1, t2);
///     sum.get();
///     std::cout << profiler.key_averages().table();
///     profiler.export_chrome_trace("trace.json");
///
/// Of each call: when it passed from phase to phase on both sides (docs/profiling.md), the
/// operators that the callee ran for it, the batch that it was a row of, and the calls that its
/// handler made, with theirs. All of it comes with the reply: what a handler sets in motion that
/// goes on afterwards is not recorded. Calls are there when they have ended, before their futures
/// are ready.
///
/// Several profilers of one node each record all of its calls. A profiler may outlive its node. All
/// functions are thread-safe.
class BATCHRPC_EXPORT Profiler {
 public:
  /// Begins. Throws InvalidArgument for options out of range.
  explicit Profiler(const Node& node, const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Ends it for calls that are made from now on; those under way are still recorded. Again, it
  /// changes nothing.
  void stop();

  /// Asks all other nodes of the group that are not lost for what their profilers record, those
  /// that still live, and takes it in: then the trace has the calls of all of them. Of each node as
  /// much is kept as there is room for, of all gathers together, what came first; the rest is
  /// counted, once for each profiler there that has it. Blocks for at most `timeout`. Returns who
  /// did not answer, each with why: "worker1: ..."; who has no profiler answers that there is
  /// nothing. Throws InvalidArgument for a time-out that is not above zero, and ShutDown when the
  /// node has been shut down or destroyed.
  std::vector<std::string> gather(Duration timeout = std::chrono::seconds(10));

  /// What was recorded until now, and gathered.
  [[nodiscard]] Recording recording() const;
  /// As a table of calls and operators by name.
  [[nodiscard]] ProfileTable key_averages() const;

  /// As a trace for https://ui.perfetto.dev and chrome://tracing. The file appears, or replaces
  /// one, when it is complete. Throws InvalidArgument that says why it could not be written.
  void export_chrome_trace(const std::string& path) const;
  /// As spans of OpenTelemetry, OTLP/JSON, as its file exporter writes them. As above.
  void export_otlp(const std::string& path, const OtlpOptions& options = {}) const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace batchrpc
