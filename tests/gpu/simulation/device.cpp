#include "device.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace gpu_simulation {
namespace {

// LibTorch calls before these would be made, and after they would be gone.
template <class T>
T& lasting() {
  static auto* const value = new T;
  return *value;
}

struct Streams {
  std::mutex mutex;
  std::vector<Stream*> all;
};

struct Block {
  std::size_t size = 0;
  Place place{};
};
struct Memory {
  std::mutex mutex;
  std::map<char*, Block> blocks;
};

struct Report {
  std::mutex mutex;
  Counts counts;
  ~Report() {
    std::fprintf(
        stderr,
        "simulated GPU: %ld kernels, %ld copies, %ld operations recorded, %ld replays, %ld "
        "calls refused while recording\n",
        counts.kernels, counts.copies, counts.recorded, counts.replays, counts.refused);
  }
};
Report& report() {
  static Report value;
  return value;
}

}  // namespace

Stream::Stream(unsigned seed, int with_priority) : priority(with_priority), random_(seed) {
  std::thread([this] { run(); }).detach();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    const Operation operation = std::move(waiting_.front());
    waiting_.pop_front();
    const auto drawn = random_();
    lock.unlock();
    pause(drawn);
    operation();
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

void pause(std::mt19937::result_type drawn) {
  if (drawn % 16 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(drawn / 16 % 300));
  } else if (drawn % 16 < 4) {
    std::this_thread::yield();
  }
}

void Stream::run_after_all_before(Operation operation) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(operation));
  ++added_;
  changed_.notify_all();
}

cudaError_t Stream::add(Operation operation, const char* what) {
  {
    const std::lock_guard lock(capture_mutex_);
    if (graph_ != nullptr) {
      if (!is_valid_) return fail(cudaErrorStreamCaptureInvalidated, what);
      graph_->operations.push_back(std::move(operation));
      count(&Counts::recorded);
      return cudaSuccess;
    }
  }
  run_after_all_before(std::move(operation));
  return cudaSuccess;
}

void Stream::wait() {
  std::unique_lock lock(mutex_);
  const unsigned long until = added_;
  changed_.wait(lock, [&] { return done_ >= until; });
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  return done_ == added_;
}

cudaError_t Stream::refuse_in_capture(const char* what) {
  const std::lock_guard lock(capture_mutex_);
  if (graph_ == nullptr) return cudaSuccess;
  is_valid_ = false;
  count(&Counts::refused);
  return fail(cudaErrorStreamCaptureUnsupported, what);
}

cudaError_t Stream::begin_capture(cudaStreamCaptureMode mode) {
  if (this == &stream_of(nullptr)) return fail(cudaErrorStreamCaptureImplicit, "begin of capture");
  static std::atomic<unsigned long long> captures{0};
  const std::lock_guard lock(capture_mutex_);
  if (graph_ != nullptr) return fail(cudaErrorIllegalState, "begin of capture");
  graph_ = std::make_unique<Graph>();
  is_valid_ = true;
  mode_ = mode;
  owner_ = std::this_thread::get_id();
  capture_id_ = ++captures;
  return cudaSuccess;
}

cudaError_t Stream::end_capture(cudaGraph_t* graph) {
  const std::lock_guard lock(capture_mutex_);
  *graph = nullptr;
  if (graph_ == nullptr) return fail(cudaErrorIllegalState, "end of capture");
  if (owner_ != std::this_thread::get_id() && mode_ != cudaStreamCaptureModeRelaxed) {
    return fail(cudaErrorStreamCaptureWrongThread, "end of capture");
  }
  const std::unique_ptr<Graph> ended = std::move(graph_);
  if (!is_valid_) return fail(cudaErrorStreamCaptureInvalidated, "end of capture");
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(std::move(*ended)));
  return cudaSuccess;
}

cudaStreamCaptureStatus Stream::capture_status() {
  const std::lock_guard lock(capture_mutex_);
  if (graph_ == nullptr) return cudaStreamCaptureStatusNone;
  return is_valid_ ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
}

bool Stream::forbids_unsafe_call(cudaStreamCaptureMode of_thread) {
  const std::lock_guard lock(capture_mutex_);
  if (graph_ == nullptr || of_thread == cudaStreamCaptureModeRelaxed) return false;
  const bool own = owner_ == std::this_thread::get_id() && mode_ != cudaStreamCaptureModeRelaxed;
  const bool any = mode_ == cudaStreamCaptureModeGlobal && of_thread == cudaStreamCaptureModeGlobal;
  if (!own && !any) return false;
  is_valid_ = false;
  return true;
}

cudaStream_t make_stream(int priority) {
  auto& streams = lasting<Streams>();
  const std::lock_guard lock(streams.mutex);
  const auto seed = static_cast<unsigned>(streams.all.size());
  streams.all.push_back(new Stream(seed, priority));
  return reinterpret_cast<cudaStream_t>(streams.all.back());
}

Stream& stream_of(cudaStream_t handle) {
  static const cudaStream_t default_stream = make_stream();
  const bool is_default =
      handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  return *reinterpret_cast<Stream*>(is_default ? default_stream : handle);
}

void wait_for_all_streams() {
  std::vector<Stream*> all;
  {
    auto& streams = lasting<Streams>();
    const std::lock_guard lock(streams.mutex);
    all = streams.all;
  }
  for (Stream* stream : all)
    stream->wait();
}

bool is_forbidden(const char* what) {
  auto& streams = lasting<Streams>();
  const std::lock_guard lock(streams.mutex);
  bool forbidden = false;
  for (Stream* stream : streams.all)
    forbidden = stream->forbids_unsafe_call(capture_mode()) || forbidden;
  if (!forbidden) return false;
  count(&Counts::refused);
  fail(cudaErrorStreamCaptureUnsupported, what);
  return true;
}

cudaStreamCaptureMode& capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

cudaError_t fail(cudaError_t error, const char* what) {
  if (std::getenv("SIMULATED_GPU_TRACE") != nullptr) {
    std::fprintf(stderr, "simulated GPU: error %d of %s\n", static_cast<int>(error), what);
  }
  return last_error() = error;
}

Place place_of(const void* memory) {
  auto& all = lasting<Memory>();
  const std::lock_guard lock(all.mutex);
  const auto* const at = static_cast<const char*>(memory);
  auto block = all.blocks.upper_bound(const_cast<char*>(at));
  if (block == all.blocks.begin()) return Place::pageable;
  --block;
  return at < block->first + block->second.size ? block->second.place : Place::pageable;
}

void* allocate(std::size_t size, Place place) {
  constexpr std::size_t kPage = 4096;
  size = std::max(kPage, (size + kPage - 1) / kPage * kPage);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto& all = lasting<Memory>();
  const std::lock_guard lock(all.mutex);
  all.blocks[static_cast<char*>(memory)] = {size, place};
  return memory;
}

void free(void* memory) {
  if (memory == nullptr) return;
  wait_for_all_streams();
  std::size_t size = 0;
  {
    auto& all = lasting<Memory>();
    const std::lock_guard lock(all.mutex);
    const auto block = all.blocks.find(static_cast<char*>(memory));
    if (block == all.blocks.end()) {
      std::fprintf(stderr, "simulated GPU: %p is freed, and was not allocated\n", memory);
      std::abort();
    }
    size = block->second.size;
    all.blocks.erase(block);
  }
  ::munmap(memory, size);
}

void count(long Counts::*which) {
  const std::lock_guard lock(report().mutex);
  ++(report().counts.*which);
}

}  // namespace gpu_simulation
