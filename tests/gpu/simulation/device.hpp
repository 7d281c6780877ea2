#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

/// A GPU that is none, for tests of what batchrpc does with one: when it waits for which stream,
/// what is recorded, whose memory is used when. The library that is made of these files takes the
/// place of CUDA's runtime, its driver and cuBLAS beneath LibTorch (scripts/simulated_gpu.sh).
/// Streams are threads that run what they are given with random pauses, so that what is not ordered
/// happens in any order; memory that is given back faults when it is touched. Results are those of
/// the kernels in kernels.cpp and blas.cpp; others are named on stderr, and compute nothing. What
/// this says of speed, and of kernels, is nothing.
namespace gpu_simulation {

using Operation = std::function<void()>;

/// What cudaStreamEndCapture() gives.
struct Graph {
  std::vector<Operation> operations;
};

class Stream {
 public:
  explicit Stream(unsigned seed, int priority = 0);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// To be run after all before; while it is captured, recorded instead.
  cudaError_t add(Operation operation, const char* what);
  void wait();
  [[nodiscard]] bool is_idle();

  /// For what may not be asked of a stream that is captured: that ends the capture in an error.
  cudaError_t refuse_in_capture(const char* what);
  cudaError_t begin_capture(cudaStreamCaptureMode mode);
  cudaError_t end_capture(cudaGraph_t* graph);
  [[nodiscard]] cudaStreamCaptureStatus capture_status();
  [[nodiscard]] unsigned long long capture_id() const { return capture_id_; }
  /// Makes the capture invalid if it forbids this thread, in that mode, unsafe calls.
  bool forbids_unsafe_call(cudaStreamCaptureMode of_thread);

  const int priority;

 private:
  [[noreturn]] void run();
  void run_after_all_before(Operation operation);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Operation> waiting_;
  unsigned long added_ = 0;
  unsigned long done_ = 0;
  std::mt19937 random_;

  std::mutex capture_mutex_;  // guards what follows
  std::unique_ptr<Graph> graph_;
  bool is_valid_ = true;
  cudaStreamCaptureMode mode_{};
  std::thread::id owner_;
  unsigned long long capture_id_ = 0;
};

/// Now and then, for a random time, what `drawn` says.
void pause(std::mt19937::result_type drawn);

/// Streams live as long as the process.
cudaStream_t make_stream(int priority = 0);
/// The default stream, too.
Stream& stream_of(cudaStream_t handle);
void wait_for_all_streams();

/// Calls that CUDA forbids while a stream is being captured: remembers the error.
bool is_forbidden(const char* what);
/// Of this thread.
cudaStreamCaptureMode& capture_mode();
/// Of this thread: what cudaGetLastError() says.
cudaError_t& last_error();
cudaError_t fail(cudaError_t error, const char* what);

enum class Place { pageable, pinned, device };
[[nodiscard]] Place place_of(const void* memory);
void* allocate(std::size_t size, Place place);
/// Waits for all streams, as cudaFree() does.
void free(void* memory);

struct Counts {
  long kernels = 0;
  long copies = 0;
  long recorded = 0;
  long replays = 0;
  long refused = 0;  ///< calls, while a stream was captured
};
/// Changes them; they are printed at the end of the process.
void count(long Counts::*which);

}  // namespace gpu_simulation

#define GPU_SIMULATION_API extern "C" __attribute__((visibility("default")))
