#include "tensor_benchmark/copies.hpp"

#include <ATen/record_function.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>

namespace tensor_benchmark {

struct CopyCounts::Shared {
  std::atomic<bool> counting{false};
  std::atomic<std::uint64_t> client{0};
  std::atomic<std::uint64_t> server{0};
};

namespace {

// A global, because the replacement of memcpy has no other place to look.
std::atomic<const std::atomic<bool>*> counting{nullptr};
std::atomic<std::atomic<std::uint64_t>*> copied{nullptr};

void note_copy(std::size_t bytes) {
  if (bytes < CopyCounts::kLeastCopy) return;
  const std::atomic<bool>* const flag = counting.load(std::memory_order_acquire);
  if (flag == nullptr || !flag->load(std::memory_order_relaxed)) return;
  copied.load(std::memory_order_relaxed)->fetch_add(bytes, std::memory_order_relaxed);
}

std::unique_ptr<at::ObserverContext> note_torch_copy(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "aten::copy_") {
    const auto inputs = function.inputs();
    if (!inputs.empty() && inputs[0].isTensor()) note_copy(inputs[0].toTensor().nbytes());
  }
  return nullptr;
}

}  // namespace

extern "C" {
// NOLINTBEGIN: the linker's names
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);

void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  note_copy(bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  note_copy(bytes);
  return __real_memmove(to, from, bytes);
}
// NOLINTEND
}

bool CopyCounts::possible() {
#ifdef TENSOR_BENCHMARK_COUNTS_COPIES
  return true;
#else
  return false;
#endif
}

CopyCounts::CopyCounts() : file_(::memfd_create("tensor_benchmark", 0)) {
  if (file_ < 0 || ::ftruncate(file_, sizeof(Shared)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  map();
  copied = &shared_->client;
  counting = &shared_->counting;
}

CopyCounts::CopyCounts(int file) : file_(file) {
  map();
  copied = &shared_->server;
  counting = &shared_->counting;
}

CopyCounts::~CopyCounts() {
  counting = nullptr;
  ::close(file_);  // the mapping stays, for threads that are copying
}

void CopyCounts::map() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  shared_ = static_cast<Shared*>(memory);  // an empty one consists of zeros
}

void CopyCounts::begin() {
  shared_->client = 0;
  shared_->server = 0;
  torch_callback_ = at::addGlobalCallback(at::RecordFunctionCallback(&note_torch_copy)
                                              .needsInputs(true)
                                              .scopes({at::RecordScope::FUNCTION}));
  shared_->counting = true;
}

Copied CopyCounts::end() {
  shared_->counting = false;
  at::removeCallback(torch_callback_);
  return {.client = shared_->client, .server = shared_->server};
}

}  // namespace tensor_benchmark
