#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/wire/encoder.hpp"

/// How a call that is being answered is cancelled: what the call, the contexts of its handler and
/// its session share.
namespace batchrpc::detail {

class CallState;
class ExposedFunction;

/// Something to be done when a call is cancelled, while this lives.
class BATCHRPC_EXPORT CancelHook {
 public:
  CancelHook() = default;
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  virtual ~CancelHook() { detach(); }

  /// From now on, once. False when the call was cancelled before: then it is not done.
  [[nodiscard]] bool attach(std::shared_ptr<CallState> call);
  /// Not any more. What has begun on another thread goes on.
  void detach() noexcept;

 private:
  friend class CallState;
  /// What is to be done. Copies what it needs, since the hook may be gone when the task runs; is
  /// called under a lock.
  [[nodiscard]] virtual Task task() noexcept = 0;

  std::shared_ptr<CallState> call_;
  CancelHook* previous_ = nullptr;
  CancelHook* next_ = nullptr;
  bool attached_ = false;  // guarded by the call
};

/// One call that outlives its message. Thread-safe.
class BATCHRPC_EXPORT CallState : public std::enable_shared_from_this<CallState> {
 public:
  /// What a call's handler has yet to be given.
  struct Arguments {
    std::unique_ptr<Word[]> words;
    std::span<const Word> segment;
    std::vector<Bytes> payloads;
    std::shared_ptr<void> reception;
  };

  explicit CallState(std::uint64_t call_id) noexcept : id(call_id) {}

  /// The call waits: keeps its arguments here, where they can be taken from it.
  void put_aside(Arguments arguments);
  /// The function that will run; so what its arguments refer to can be given back.
  void set_function(std::shared_ptr<ExposedFunction> function);
  /// Gives the arguments back to the call, which starts. False when it was cancelled before.
  [[nodiscard]] bool start(Arguments& arguments);
  /// It is answered: nobody can cancel it any more.
  void end() noexcept;
  /// Nobody waits for its answer. It never starts if it has not, and its arguments are destroyed
  /// here; else its handler is told here, by the user's code. On a thread that decodes for the
  /// node.
  void cancel() noexcept;

  [[nodiscard]] bool cancelled() const noexcept {
    return phase_.load(std::memory_order_acquire) == Phase::cancelled;
  }
  /// Whether it is being answered still.
  [[nodiscard]] bool under_way() const noexcept {
    return phase_.load(std::memory_order_acquire) == Phase::under_way;
  }
  [[nodiscard]] std::stop_token stop_token();
  [[nodiscard]] Future<void> when_cancelled();

  const std::uint64_t id;

 private:
  friend class CancelHook;
  enum class Phase : std::uint8_t { under_way, cancelled, ended };

  std::mutex mutex_;  // guards what follows
  std::atomic<Phase> phase_{Phase::under_way};
  Arguments waiting_;
  std::shared_ptr<ExposedFunction> function_;  // while it waits
  CancelHook* hooks_ = nullptr;
  std::stop_source stop_{std::nostopstate};
  std::vector<Promise<void>> promises_;
};

}  // namespace batchrpc::detail
