#include "metrics/concurrent_histogram.hpp"

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace batchrpc {

ConcurrentHistogram::~ConcurrentHistogram() {
  for (const auto& page : pages_)
    delete page.load(std::memory_order_relaxed);
}

ConcurrentHistogram::Page* ConcurrentHistogram::make_page(std::size_t number) noexcept {
  std::unique_ptr<Page> made(new (std::nothrow) Page);
  if (!made) return nullptr;
  Page* there = nullptr;
  const bool first = pages_[number].compare_exchange_strong(
      there, made.get(), std::memory_order_acq_rel, std::memory_order_acquire);
  return first ? made.release() : there;
}

Histogram ConcurrentHistogram::snapshot() const {
  std::vector<std::uint64_t> counts;
  std::uint64_t any = 0;
  for (std::size_t number = 0; number < kPages; ++number) {
    const Page* const page = pages_[number].load(std::memory_order_acquire);
    if (page == nullptr) continue;
    counts.resize((number + 1) * histogram_layout::kHalf);
    for (std::size_t i = 0; i < histogram_layout::kHalf; ++i) {
      const std::uint64_t count = page->counts[i].load(std::memory_order_acquire);
      counts[number * histogram_layout::kHalf + i] = count;
      any |= count;
    }
  }
  if (any == 0) return {};
  return {std::move(counts), sum_.load(std::memory_order_relaxed)};
}

}  // namespace batchrpc
