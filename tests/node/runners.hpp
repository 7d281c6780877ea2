#pragma once

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"

namespace batchrpc::test {

/// A context that several threads run.
class Runners {
 public:
  explicit Runners(int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this] { run(); });
  }
  ~Runners() {
    work_.reset();
    for (auto& thread : threads_)
      thread.join();
  }
  Runners(const Runners&) = delete;
  Runners& operator=(const Runners&) = delete;

  [[nodiscard]] bool has(std::thread::id id) const {
    return std::any_of(threads_.begin(), threads_.end(),
                       [id](const auto& thread) { return thread.get_id() == id; });
  }

  asio::io_context context;
  std::atomic<int> thrown{0};  // out of its run()

 private:
  void run() {
    for (;;) {
      try {
        context.run();
        return;
      } catch (const std::exception&) {
        ++thrown;
      }
    }
  }

  asio::executor_work_guard<asio::io_context::executor_type> work_{context.get_executor()};
  std::vector<std::thread> threads_;
};

/// A node on such a context.
[[nodiscard]] inline Node node_on(Runners& runners, NodeOptions options) {
  options.io_context = &runners.context;
  return Node(std::move(options));
}

}  // namespace batchrpc::test
