#include <batchrpc/torch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "batch_benchmark/sections.hpp"
#include "common/resident_memory.hpp"

namespace batch_benchmark {

namespace {

using batchrpc_examples::resident_bytes;

constexpr std::int64_t kFew = 10'000;
constexpr std::int64_t kMany = 1'000'000;

struct Grown {
  std::int64_t after_few = 0;
  std::int64_t after_many = 0;
};

template <class R, class T>
Grown grow(const batchrpc::Batcher<R(T)>& batcher, const T& row, const Run& run) {
  std::vector<batchrpc::Future<R>> futures(kBatch);
  Grown grown;
  for (std::int64_t rows = 0; rows < kMany; rows += kBatch) {
    if (grown.after_few == 0 && rows >= kFew) {
      grown.after_few = resident_bytes();
      run.interrupts.check();
    }
    for (auto& future : futures)
      future = batcher(row);
    for (auto& future : futures)
      std::move(future).get();
  }
  grown.after_many = resident_bytes();
  return grown;
}

}  // namespace

nlohmann::json measure_memory(const Run& run) {
  const batchrpc::BatchOptions options{
      .max_size = kBatch, .min_size = kBatch, .short_handler = true};
  run.out << "\nmemory: resident after rows of one batcher\n"
          << text_of("  %-10s %14s %14s %14s\n", "rows of", "10^4, MiB", "10^6, MiB", "B a row");
  nlohmann::json entries = nlohmann::json::array();
  const auto add = [&](const char* type, const Grown& grown) {
    const double each =
        static_cast<double>(grown.after_many - grown.after_few) / static_cast<double>(kMany - kFew);
    constexpr double kMiB = 1 << 20;
    run.out << text_of("  %-10s %14.1f %14.1f %14.3f\n", type,
                       static_cast<double>(grown.after_few) / kMiB,
                       static_cast<double>(grown.after_many) / kMiB, each)
            << std::flush;
    entries.push_back({{"rows_of", type},
                       {"bytes_after_1e4", grown.after_few},
                       {"bytes_after_1e6", grown.after_many},
                       {"bytes_a_row", each}});
  };
  add("int", grow(batchrpc::Batcher<int(int)>(options, [](std::vector<int> rows) { return rows; }),
                  1, run));
  add("4 floats",
      grow(batchrpc::Batcher<at::Tensor(at::Tensor)>(options, [](at::Tensor rows) { return rows; }),
           at::ones({4}), run));
  return entries;
}

}  // namespace batch_benchmark
