#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/bytes.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/function.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/base/small_mutex.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/wire/encoder.hpp"

/// How a call that is being answered is cancelled: what the call, the contexts of its handler and
/// its session share.
namespace batchrpc {
class InFlightCalls;
}  // namespace batchrpc

namespace batchrpc::detail {

class CallState;
class ExposedFunction;
class ReplySink;

struct FreeWords {
  std::size_t count = 0;
  void operator()(Word* words) const noexcept { free_block(words, count * sizeof(Word)); }
};

/// What a call's function is given.
struct CallArguments {
  std::unique_ptr<Word[], FreeWords> words{};  ///< null: they are the message's
  std::span<const Word> segment{};             ///< of `words`, or of the message
  std::vector<Bytes> payloads{};               ///< what came beside the message
  std::shared_ptr<void> receive_plan{};        ///< ReceivePlan::kept
};

/// Something to be done when a call is cancelled, while this lives.
class BATCHRPC_EXPORT CancelHook {
 public:
  CancelHook() = default;
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  virtual ~CancelHook() { detach(); }

  /// From now on, once. False when the call was cancelled before: then it is not done.
  [[nodiscard]] bool attach(Ref<CallState> call);
  /// Not any more. What has begun on another thread goes on.
  void detach() noexcept;

 private:
  friend class CallState;
  /// What is to be done. Copies what it needs, since the hook may be gone when the task runs; is
  /// called under a lock.
  [[nodiscard]] virtual Task task() noexcept = 0;

  Ref<CallState> call_;
  CancelHook* previous_ = nullptr;
  CancelHook* next_ = nullptr;
  bool attached_ = false;  // guarded by the call
};

/// One call that outlives its message. Thread-safe.
class BATCHRPC_EXPORT CallState final : public Pooled, public RefCounted<CallState> {
 public:
  /// `arguments` are not the message's. `started`: it has begun to run. `function`: the one that
  /// will run, or does, which lives until let_go(); null: it is not known yet.
  CallState(std::uint64_t call_id, CallArguments&& arguments, bool started,
            std::shared_ptr<ExposedFunction> function) noexcept
      : id(call_id),
        arguments_(std::move(arguments)),
        function_(std::move(function)),
        state_(started ? Phase::running : Phase::waiting) {}

  /// By who answers it.
  void set_function(std::shared_ptr<ExposedFunction> function);
  /// Null when it is over, or not known yet.
  [[nodiscard]] std::shared_ptr<ExposedFunction> function();
  /// False when it was cancelled before.
  [[nodiscard]] bool start();
  /// Of a call that has started: for who runs it.
  [[nodiscard]] CallArguments& arguments() noexcept { return arguments_; }
  /// It is answered: nobody can cancel it any more.
  void end() noexcept;
  /// After end(), by who answered it: destroys what only the answer needed. Contexts may still be
  /// there.
  void let_go() noexcept;
  /// Nobody waits for its answer. It never starts if it has not, and its arguments are destroyed
  /// here; else its handler is told here, by the user's code. On a thread that decodes for the
  /// node.
  void cancel() noexcept { static_cast<void>(cancel(true)); }
  /// The same, if it has not started; false when it has, or is over.
  [[nodiscard]] bool cancel_if_waiting() noexcept { return cancel(false); }

  [[nodiscard]] bool cancelled() const noexcept {
    return phase_of(state_.load(std::memory_order_acquire)) == Phase::cancelled;
  }
  /// Whether it has not begun to run, and may yet.
  [[nodiscard]] bool waits() const noexcept {
    const std::uint8_t phase = phase_of(state_.load(std::memory_order_acquire));
    return phase == Phase::waiting ||
           (phase == Phase::running && in_line_.load(std::memory_order_relaxed));
  }
  /// Of a call that has started: what was started only waits for the turn of what is to run.
  void set_in_line(bool in_line) noexcept { in_line_.store(in_line, std::memory_order_relaxed); }
  /// Whether it is being answered still.
  [[nodiscard]] bool under_way() const noexcept {
    return is_under_way(state_.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::stop_token stop_token();
  [[nodiscard]] Future<void> when_cancelled();

  const std::uint64_t id;
  std::shared_ptr<ReplySink> sink;  ///< for who answers it

 private:
  friend class CancelHook;
  friend class batchrpc::InFlightCalls;
  // What becomes of a call is decided by one exchange, since each call pays for it. Who looks at
  // what follows the mutex holds that and adds the bit kWatched: so whoever ends the call takes the
  // mutex once, too, and what was looked at is still there.
  struct Phase {
    static constexpr std::uint8_t waiting = 0;
    static constexpr std::uint8_t running = 1;
    static constexpr std::uint8_t cancelled = 2;
    static constexpr std::uint8_t ended = 3;
  };
  static constexpr std::uint8_t kWatched = 4;
  static constexpr std::uint8_t phase_of(std::uint8_t state) noexcept { return state & 3U; }
  static constexpr bool is_under_way(std::uint8_t state) noexcept {
    return phase_of(state) <= Phase::running;
  }
  // Who is to be told of a cancellation.
  struct Watch {
    std::stop_source stop{std::nostopstate};
    std::vector<Promise<void>> promises{};
  };

  bool cancel(bool also_started) noexcept;
  // Under the mutex. The state as it was.
  std::uint8_t look() noexcept { return state_.fetch_or(kWatched, std::memory_order_acq_rel); }
  [[nodiscard]] Watch& watch();

  CallState* next_kept_ = nullptr;             // guarded by the InFlightCalls
  CallArguments arguments_;                    // of who starts it, or cancels it before that
  std::shared_ptr<ExposedFunction> function_;  // of who answers it; others look
  CancelHook* hooks_ = nullptr;
  std::unique_ptr<Watch> watch_;  // null: nobody has asked for it
  SmallMutex mutex_;
  std::atomic<std::uint8_t> state_;
  std::atomic<bool> in_line_{false};
};

}  // namespace batchrpc::detail
