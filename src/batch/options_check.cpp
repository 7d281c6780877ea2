#include "batch/options_check.hpp"

#include <set>

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {
namespace {

// The limit of batches and queues: it detects a negative number that became a size.
constexpr std::size_t kMostRows = std::size_t{1} << 30;

void check(bool good, const std::string& what) {
  if (!good) throw InvalidArgument("BatchOptions::" + what);
}

void check_size(const char* name, std::size_t value) {
  check(value >= 1, std::string(name) + " must be at least 1");
  check(value <= kMostRows, std::string(name) + " must be at most " + std::to_string(kMostRows) +
                                ", not " + std::to_string(value) + " (a negative number?)");
}

std::string compared(const char* name, std::size_t value, const char* how, const char* other,
                     std::size_t limit) {
  return std::string(name) + " (" + std::to_string(value) + ") must be " + how + " " + other +
         " (" + std::to_string(limit) + ")";
}

void check_preferred(const BatchOptions& options, const BatchWork& work) {
  const auto& sizes = options.preferred_sizes;
  if (sizes.empty()) return;
  for (const std::size_t size : sizes)
    check_size("preferred_sizes: each", size);
  for (std::size_t i = 1; i < sizes.size(); ++i)
    check(sizes[i - 1] < sizes[i], "preferred_sizes must be ascending, but " +
                                       std::to_string(sizes[i - 1]) + " is before " +
                                       std::to_string(sizes[i]));
  check(sizes.back() <= options.max_size, compared("preferred_sizes: the last", sizes.back(),
                                                   "at most", "max_size", options.max_size));
  check(work.can_pad, "preferred_sizes needs copyable rows, since it pads batches with copies");
}

void check_names(const BatchOptions& options) {
  std::set<std::string> names;
  for (const std::string& name : options.all_of) {
    check(!name.empty(), "all_of has an empty name");
    check(names.insert(name).second, "all_of names '" + name + "' twice");
  }
  const LargestBatch largest = largest_batch(options);
  check(names.size() <= largest.rows,
        "all_of has " + std::to_string(names.size()) + " names, but a batch has at most " +
            std::to_string(largest.rows) + " rows: raise " + largest.option);
}

void check_target(const BatchOptions& options) {
  const LatencyTarget& target = options.latency_target;
  check(target.latency >= Duration::zero(), "latency_target.latency must not be negative");
  if (target.latency == Duration::zero()) return;
  check(target.percentile > 0 && target.percentile < 1,
        "latency_target.percentile must be above 0 and below 1, such as 0.99, but is " +
            std::to_string(target.percentile));
  check(options.max_wait == Duration::zero() && options.min_size == 1 && options.all_of.empty(),
        "latency_target decides when a batch starts: do not set max_wait, min_size or all_of with "
        "it");
}

}  // namespace

LargestBatch largest_batch(const BatchOptions& options) noexcept {
  if (options.preferred_sizes.empty()) return {options.max_size, "max_size"};
  return {options.preferred_sizes.back(), "preferred_sizes"};
}

void check_options(const BatchOptions& options, const BatchWork& work) {
  check_size("max_size", options.max_size);
  check_size("min_size", options.min_size);
  check_size("max_queue", options.max_queue);
  check_size("parallelism", options.parallelism);
  check(options.max_queue >= options.max_size,
        compared("max_queue", options.max_queue, "at least", "max_size", options.max_size));
  check(options.max_queue_bytes >= 1, "max_queue_bytes must be at least 1");
  check(options.max_wait >= Duration::zero(), "max_wait must not be negative");
  check(options.isolate == Isolate::none || work.can_repeat,
        "isolate needs copyable rows, since it runs them again");
  check(!options.short_handler || options.executor == nullptr,
        "set either short_handler or executor, not both");
  if (work.accumulate) {
    check(options.parallelism == 1,
          "parallelism must be 1, since a reducer has one batch at a time");
    check(options.preferred_sizes.empty(),
          "preferred_sizes cannot be used with a reducer: its rows are not padded");
    check(options.isolate == Isolate::none,
          "isolate cannot be used with a reducer: its rows fail alone anyway");
    check(options.latency_target.latency == Duration::zero(),
          "latency_target cannot be used with a reducer: a row costs the same in a batch of any "
          "size");
  }
  if (!options.device.empty()) {
    check(static_cast<bool>(work.check_device),
          "device is for batches of tensors, but this batcher's rows have none");
    work.check_device(options.device);
  }
  check_preferred(options, work);
  const LargestBatch largest = largest_batch(options);
  check(options.min_size <= largest.rows,
        compared("min_size", options.min_size, "at most", largest.option, largest.rows));
  check_names(options);
  check_target(options);
}

void check_change(const BatchOptions& from, const BatchOptions& to) {
  check(from.short_handler == to.short_handler && from.executor == to.executor,
        "short_handler and executor cannot be changed while the batcher runs");
}

void check_has_node(const BatchOptions& options, bool has_node) {
  if (has_node || options.all_of.empty()) return;
  throw InvalidArgument(
      "BatchOptions::all_of names peers, so the batcher needs a node: expose it on one before its "
      "first row");
}

void check_host(const BatchOptions& options, const Host& host) {
  check_has_node(options, !host.name().empty());
  for (const std::string& name : options.all_of) {
    if (host.may_be_peer(name)) continue;
    throw InvalidArgument("BatchOptions::all_of: the node's group is complete and has no node '" +
                          name + "'");
  }
  check(!host.exclusive() || options.parallelism == 1,
        "parallelism must be 1 with ExposeOptions::exclusive, not " +
            std::to_string(options.parallelism) + ": one batch has the lock at a time");
}

}  // namespace batchrpc::detail
