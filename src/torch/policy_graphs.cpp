#include "torch/policy_graphs.hpp"

#include <torch/version.h>

#include "batchrpc/base/error.hpp"

// A LibTorch for CUDA has the headers, and CUDA's own, which it includes, are there.
#if (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)) && \
    __has_include(<cuda_runtime_api.h>) && __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

namespace batchrpc::detail {
namespace {

class GraphBackend final : public PolicyBackend {
 public:
  GraphBackend(std::unique_ptr<PolicyBackend> backend, std::string source, bool weights_move,
               const at::Device& device)
      : backend_(std::move(backend)),
        source_(std::move(source)),
        weights_move_(weights_move),
        stream_(c10::cuda::getStreamFromPool(false, device.index())),
        pool_(at::cuda::graph_pool_handle()) {}

  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    const c10::cuda::CUDAGuard device(stream_.device());
    const std::lock_guard lock(mutex_);
    require_recordable();
    Recorded& recorded = recorded_[observations.size(0)];
    if (!recorded.graph) record(recorded, observations);
    recorded.observations.copy_(observations, true);
    recorded.graph->replay();  // on the thread's current stream, as are the copies
    std::vector<at::Tensor> outputs;
    outputs.reserve(recorded.outputs.size());
    for (const at::Tensor& output : recorded.outputs)
      outputs.push_back(output.clone());
    c10::cuda::getCurrentCUDAStream().synchronize();  // the next one writes to the same places
    return outputs;
  }

  void prepare(const NamedTensors& weights) override {
    {
      const std::lock_guard lock(mutex_);
      require_recordable();
    }
    backend_->prepare(weights);
  }
  void apply() override {
    backend_->apply();
    if (!weights_move_) return;
    const c10::cuda::CUDAGuard device(stream_.device());
    const std::lock_guard lock(mutex_);
    try {
      for (auto& [rows, recorded] : recorded_)  // they read the weights where those were
        record(recorded, recorded.observations);
    } catch (const std::exception& error) {
      if (failure_.empty()) {
        failure_ = source_ + " could not be recorded anew for an update: " + short_text(error);
      }
      throw;
    }
  }

 private:
  struct Recorded {
    std::unique_ptr<at::cuda::CUDAGraph> graph{};
    at::Tensor observations{};
    std::vector<at::Tensor> outputs{};
  };

  void require_recordable() const {
    if (!failure_.empty()) throw InvalidArgument(failure_);
  }

  /// What was recorded before goes when it is over: while the pool has a graph it can be shared.
  void record(Recorded& recorded, const at::Tensor& observations) {
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard on(stream_);  // the default one cannot be recorded
    Recorded next{std::make_unique<at::cuda::CUDAGraph>(), observations.clone(), {}};
    for (int run = 0; run < kWarmUpRuns; ++run)  // what happens at first is not recorded
      (void)backend_->run(next.observations);
    stream_.synchronize();
    try {
      next.graph->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      next.outputs = backend_->run(next.observations);
      next.graph->capture_end();
    } catch (const std::exception& error) {
      failure_ = source_ + " cannot be recorded as a CUDA graph, with " +
                 std::to_string(observations.size(0)) +
                 " rows: turn PolicyOptions::cuda_graphs off (" + short_text(error) + ")";
      abandon(std::move(next.graph));
      throw InvalidArgument(failure_);
    }
    stream_.synchronize();
    recorded = std::move(next);
  }

  /// Ends a recording that failed: then the stream can be used again.
  void abandon(std::unique_ptr<at::cuda::CUDAGraph> graph) const {
    try {
      graph->capture_end();
    } catch (const std::exception&) {
      try {  // LibTorch 2.11 has not told the allocator, which then keeps what others free
        c10::cuda::CUDACachingAllocator::endAllocateToPool(stream_.device_index(), pool_);
      } catch (const std::exception&) {
        // It has.
      }
      (void)graph.release();  // the allocator for pinned memory may go on asking it
    }
  }

  const std::unique_ptr<PolicyBackend> backend_;
  const std::string source_;
  const bool weights_move_;
  const c10::cuda::CUDAStream stream_;         // one: cuBLAS keeps memory for each
  const at::cuda::MempoolId_t pool_;           // of all graphs, since one runs at a time
  std::mutex mutex_;                           // guards what follows
  std::map<std::int64_t, Recorded> recorded_;  // by batch size
  std::string failure_;                        // what every forward fails with, if any
};

}  // namespace

LoadedPolicy with_cuda_graphs(LoadedPolicy loaded) {
  const at::Device device(loaded.info.device);
  if (!device.is_cuda()) {
    throw InvalidArgument("PolicyOptions::cuda_graphs is set, and PolicyOptions::device is '" +
                          loaded.info.device + "'");
  }
  const bool weights_move = loaded.info.kind == PolicyKind::compiled;
  loaded.backend = std::make_unique<GraphBackend>(std::move(loaded.backend), loaded.source,
                                                  weights_move, device);
  return loaded;
}

}  // namespace batchrpc::detail

#else

namespace batchrpc::detail {

LoadedPolicy with_cuda_graphs(LoadedPolicy /*loaded*/) {
  throw InvalidArgument("PolicyOptions::cuda_graphs: batchrpc is built with LibTorch " TORCH_VERSION
                        ", which has none; take a LibTorch for CUDA, 2.10 or later");
}

}  // namespace batchrpc::detail

#endif
