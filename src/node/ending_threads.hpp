#pragma once

#include <asio/execution_context.hpp>
#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "batchrpc/base/function.hpp"

namespace batchrpc {

/// Threads that end nodes on an embedding program's io_context, when the thread that dropped the
/// last handle cannot. The context outlives the threads.
class EndingThreads final : public asio::execution_context::service {
 public:
  using key_type = EndingThreads;
  inline static asio::execution_context::id id;

  explicit EndingThreads(asio::execution_context& context) : service(context) {}

  /// Throws std::system_error if the system starts no more threads.
  void run(Task task) {
    const std::lock_guard lock(mutex_);
    std::erase_if(threads_, [](Entry& entry) { return entry.join_if_done(); });
    Entry& entry = threads_.emplace_back();
    try {
      entry.thread = std::thread([&entry, task = std::move(task)]() mutable {
        task();
        task = nullptr;
        entry.done = true;
      });
    } catch (...) {
      threads_.pop_back();
      throw;
    }
  }

 private:
  struct Entry {
    std::thread thread{};
    std::atomic<bool> done{false};

    bool join_if_done() {
      if (done) thread.join();
      return done;
    }
  };

  void shutdown() override {
    for (Entry& entry : threads_)
      entry.thread.join();
  }

  std::mutex mutex_;
  std::list<Entry> threads_;
};

}  // namespace batchrpc
