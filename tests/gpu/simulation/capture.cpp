// Captures of streams, and graphs: each is the operations of one stream, in order.
#include "device.hpp"

using namespace gpu_simulation;

namespace {

struct Executable {
  const Graph graph;
  std::mutex running;  // one launch of a graph at a time, if not in the order of launches as CUDA
  std::mt19937 random;
};
using ExecutableHandle = std::shared_ptr<Executable>;

}  // namespace

GPU_SIMULATION_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode());
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                                      cudaStreamCaptureMode mode) {
  return stream_of(stream).begin_capture(mode);
}
GPU_SIMULATION_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return stream_of(stream).end_capture(graph);
}
GPU_SIMULATION_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                     cudaStreamCaptureStatus* status) {
  *status = stream_of(stream).capture_status();
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                        cudaStreamCaptureStatus* status,
                                                        unsigned long long* id, cudaGraph_t* graph,
                                                        const cudaGraphNode_t** dependencies,
                                                        const cudaGraphEdgeData** edges,
                                                        std::size_t* dependency_count) {
  *status = stream_of(stream).capture_status();
  if (id != nullptr) *id = stream_of(stream).capture_id();
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (dependency_count != nullptr) *dependency_count = 0;
  return cudaSuccess;
}

GPU_SIMULATION_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*,
                                                 std::size_t* number) {
  *number = reinterpret_cast<Graph*>(graph)->operations.size();
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable,
                                                             cudaGraph_t graph,
                                                             unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(
      new ExecutableHandle(new Executable{*reinterpret_cast<Graph*>(graph), {}, {}}));
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  count(&Counts::replays);
  return stream_of(stream).add(
      [launched = *reinterpret_cast<ExecutableHandle*>(executable)] {
        const std::lock_guard lock(launched->running);
        for (const Operation& operation : launched->graph.operations) {
          pause(launched->random());
          operation();
        }
      },
      "cudaGraphLaunch");
}
GPU_SIMULATION_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<ExecutableHandle*>(executable);
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned,
                                                         unsigned) {
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void*, cudaHostFn_t,
                                                    unsigned, unsigned) {
  *object = reinterpret_cast<cudaUserObject_t>(1);
  return cudaSuccess;
}
GPU_SIMULATION_API cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned) {
  return cudaSuccess;
}
