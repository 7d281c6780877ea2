#include "torch/policy_graphs.hpp"

#include <torch/version.h>

#include "batchrpc/base/error.hpp"

// A LibTorch for CUDA has these headers, and the CUDA headers that they include are installed.
#if (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)) && \
    __has_include(<cuda_runtime_api.h>) && __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace batchrpc::detail {
namespace {

/// Held while a graph is recorded or destroyed. Before LibTorch 2.13 that changes the device's
/// random number generator, which all policies share.
std::mutex recording;

/// A stream of LibTorch, which has 32 per device and hands them out in turn. This class reuses
/// those of destroyed policies first, so that living policies do not share a stream. (LibTorch 2.12
/// frees cuBLAS's memory of a stream with the graphs recorded on it.)
class OwnStream {
 public:
  explicit OwnStream(c10::DeviceIndex device) : stream_(take(device)) {}
  ~OwnStream() {
    const std::lock_guard lock(mutex_);
    free_.push_back(stream_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  [[nodiscard]] const c10::cuda::CUDAStream& operator*() const { return stream_; }

 private:
  static c10::cuda::CUDAStream take(c10::DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    const auto free = std::find_if(free_.begin(), free_.end(), [&](const auto& stream) {
      return stream.device_index() == device;
    });
    if (free == free_.end()) return c10::cuda::getStreamFromPool(false, device);
    const c10::cuda::CUDAStream stream = *free;
    free_.erase(free);
    return stream;
  }

  inline static std::mutex mutex_;
  inline static std::vector<c10::cuda::CUDAStream> free_;

  const c10::cuda::CUDAStream stream_;
};

class GraphBackend final : public PolicyBackend {
 public:
  GraphBackend(std::unique_ptr<PolicyBackend> backend, std::string source, const at::Device& device)
      : backend_(std::move(backend)),
        source_(std::move(source)),
        own_stream_(device.index()),
        pool_(at::cuda::graph_pool_handle()) {}
  ~GraphBackend() override {
    const std::lock_guard one_at_a_time(recording);
    recorded_.clear();
  }
  GraphBackend(const GraphBackend&) = delete;
  GraphBackend& operator=(const GraphBackend&) = delete;

  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    const c10::cuda::CUDAGuard device(stream().device());
    const std::lock_guard lock(mutex_);
    Recorded& recorded = recorded_[observations.size(0)];
    if (!recorded.graph) recorded = record(observations);
    recorded.observations.copy_(observations, true);
    recorded.graph->replay();  // on the thread's current stream, like the copies
    std::vector<at::Tensor> outputs;
    outputs.reserve(recorded.outputs.size());
    for (const at::Tensor& output : recorded.outputs)
      outputs.push_back(output.clone());
    c10::cuda::getCurrentCUDAStream().synchronize();  // the next run writes to the same places
    return outputs;
  }

  void prepare(const NamedTensors& weights) override { backend_->prepare(weights); }
  void apply() override { backend_->apply(); }

 private:
  struct Recorded {
    std::unique_ptr<at::cuda::CUDAGraph> graph{};
    at::Tensor observations{};
    std::vector<at::Tensor> outputs{};
  };

  [[nodiscard]] const c10::cuda::CUDAStream& stream() const { return *own_stream_; }

  [[nodiscard]] Recorded record(const at::Tensor& observations) const {
    const std::lock_guard one_at_a_time(recording);
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard on(stream());  // the default stream cannot be recorded
    Recorded next{std::make_unique<at::cuda::CUDAGraph>(), observations.clone(), {}};
    for (int run = 0; run < kWarmUpRuns; ++run)  // one-time work must not be recorded
      (void)backend_->run(next.observations);
    stream().synchronize();
    try {
      next.graph->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      next.outputs = backend_->run(next.observations);
      next.graph->capture_end();
    } catch (const std::exception& error) {
      const std::string reason = short_text(error);
      abandon(std::move(next));
      throw InvalidArgument(source_ + " cannot be recorded as a CUDA graph with " +
                            std::to_string(observations.size(0)) +
                            " rows: set PolicyOptions::cuda_graphs to false (" + reason + ")");
    } catch (...) {
      abandon(std::move(next));
      throw;
    }
    stream().synchronize();
    return next;
  }

  /// Ends a failed recording, so that the stream can be used again.
  void abandon(Recorded failed) const {
    try {
      failed.graph->capture_end();
    } catch (const std::exception&) {
      try {  // LibTorch 2.11 does not end it; the allocator would then keep what others free
        c10::cuda::CUDACachingAllocator::endAllocateToPool(stream().device_index(), pool_);
      } catch (const std::exception&) {
        // It was ended already.
      }
      (void)failed.graph.release();  // the allocator for pinned memory may still use it
    }
    try {  // until a recording succeeds, the random number generator stays in recording mode
      at::cuda::CUDAGraph none;
      none.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      failed.observations.zero_();
      none.capture_end();
    } catch (const std::exception&) {
      // The first error already explains what cannot be recorded.
    }
  }

  const std::unique_ptr<PolicyBackend> backend_;
  const std::string source_;
  const OwnStream own_stream_;        // one per policy: cuBLAS keeps memory for each stream
  const at::cuda::MempoolId_t pool_;  // for all graphs, since one runs at a time
  std::mutex mutex_;                  // guards the members below
  std::map<std::int64_t, Recorded> recorded_;  // by batch size
};

}  // namespace

LoadedPolicy with_cuda_graphs(LoadedPolicy loaded) {
  const at::Device device(loaded.info.device);
  if (!device.is_cuda()) {
    throw InvalidArgument("PolicyOptions::cuda_graphs is set, but PolicyOptions::device is '" +
                          loaded.info.device + "'");
  }
  loaded.backend = std::make_unique<GraphBackend>(std::move(loaded.backend), loaded.source, device);
  return loaded;
}

}  // namespace batchrpc::detail

#else

namespace batchrpc::detail {

LoadedPolicy with_cuda_graphs(LoadedPolicy /*loaded*/) {
  throw InvalidArgument("PolicyOptions::cuda_graphs: batchrpc is built with LibTorch " TORCH_VERSION
                        ", which has no CUDA graphs; use a LibTorch for CUDA, 2.10 or later");
}

}  // namespace batchrpc::detail

#endif
