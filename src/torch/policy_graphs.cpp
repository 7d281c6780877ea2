#include "torch/policy_graphs.hpp"

#include <torch/version.h>

#include "batchrpc/base/error.hpp"

// A LibTorch for CUDA has the headers, and CUDA's own, which it includes, are there.
#if TORCH_VERSION_MAJOR >= 2 && __has_include(<cuda_runtime_api.h>) && \
    __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace batchrpc::detail {
namespace {

class GraphBackend final : public PolicyBackend {
 public:
  GraphBackend(std::unique_ptr<PolicyBackend> backend, std::vector<std::size_t> sizes,
               bool weights_move)
      : backend_(std::move(backend)), sizes_(std::move(sizes)), weights_move_(weights_move) {}

  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    const c10::cuda::CUDAGuard device(observations.device());
    const std::lock_guard lock(mutex_);
    const auto rows = static_cast<std::size_t>(observations.size(0));
    if (std::find(sizes_.begin(), sizes_.end(), rows) == sizes_.end()) {
      return backend_->run(observations);
    }
    Recorded& recorded = recorded_[rows];
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

  void prepare(const NamedTensors& weights) override { backend_->prepare(weights); }
  void apply() override {
    backend_->apply();
    if (weights_move_) recorded_.clear();  // what was recorded reads them where they were
  }

 private:
  struct Recorded {
    std::unique_ptr<at::cuda::CUDAGraph> graph{};
    at::Tensor observations{};
    std::vector<at::Tensor> outputs{};
  };

  void record(Recorded& recorded, const at::Tensor& observations) {
    const at::Tensor own = observations.clone();
    const c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream();
    before.synchronize();
    std::vector<at::Tensor> outputs;
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
    {
      const c10::cuda::CUDAStreamGuard on(stream);  // the default one cannot be recorded
      (void)backend_->run(own);                     // what happens at first is not recorded
      stream.synchronize();
      graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      try {
        outputs = backend_->run(own);
      } catch (...) {
        graph->capture_end();
        throw;
      }
      graph->capture_end();
      stream.synchronize();
    }
    recorded = {std::move(graph), own, std::move(outputs)};
  }

  const std::unique_ptr<PolicyBackend> backend_;
  const std::vector<std::size_t> sizes_;
  const bool weights_move_;
  std::mutex mutex_;
  std::map<std::size_t, Recorded> recorded_;  // by batch size
};

}  // namespace

std::unique_ptr<PolicyBackend> with_cuda_graphs(std::unique_ptr<PolicyBackend> backend,
                                                const PolicyInfo& info,
                                                const PolicyOptions& options) {
  if (!at::Device(options.device).is_cuda()) {
    throw InvalidArgument("PolicyOptions::cuda_graphs is set, and PolicyOptions::device is '" +
                          options.device + "'");
  }
  return std::make_unique<GraphBackend>(
      std::move(backend), info.batch_sizes.empty() ? options.warm_up : info.batch_sizes,
      info.kind == PolicyKind::compiled);
}

}  // namespace batchrpc::detail

#else

namespace batchrpc::detail {

std::unique_ptr<PolicyBackend> with_cuda_graphs(std::unique_ptr<PolicyBackend> /*backend*/,
                                                const PolicyInfo& /*info*/,
                                                const PolicyOptions& /*options*/) {
  throw InvalidArgument("PolicyOptions::cuda_graphs: batchrpc is built with LibTorch " TORCH_VERSION
                        ", which has none; take a LibTorch 2 for CUDA");
}

}  // namespace batchrpc::detail

#endif
