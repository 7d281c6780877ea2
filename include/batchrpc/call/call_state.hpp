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
#include "batchrpc/call/byte_budget.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/wire/encoder.hpp"

/// The state that a kept call, the contexts of its handler and its session share. Through it the
/// call is cancelled.
namespace batchrpc {
class InFlightCalls;
class LocalNode;
}  // namespace batchrpc

namespace batchrpc::detail {

class CallState;
class ExposedFunction;
class ReplySink;

struct FreeWords {
  std::size_t count = 0;
  void operator()(Word* words) const noexcept { free_block(words, count * sizeof(Word)); }
};

/// The encoded arguments of a call.
struct CallArguments {
  std::unique_ptr<Word[], FreeWords> words{};  ///< null: the segment is the message's
  std::span<const Word> segment{};             ///< of `words`, or of the message
  std::vector<Bytes> payloads{};               ///< what came beside the message
  std::shared_ptr<void> receive_plan{};        ///< ReceivePlan::kept
  ByteCharge charge{};                         ///< what they take of the peer's budget, once kept
};

/// Runs a task when a call is cancelled, if the hook is still alive then.
class BATCHRPC_EXPORT CancelHook {
 public:
  CancelHook() = default;
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  virtual ~CancelHook() { detach(); }

  /// Attaches the hook to a call, once. False if the call was cancelled before. Then the task does
  /// not run.
  [[nodiscard]] bool attach(Ref<CallState> call);
  /// Detaches the hook. A task that has begun on another thread goes on.
  void detach() noexcept;

 private:
  friend class CallState;
  /// Returns the task. It copies what it needs, because the hook may be gone when the task runs.
  /// Called under a lock.
  [[nodiscard]] virtual Task task() noexcept = 0;

  Ref<CallState> call_;
  CancelHook* previous_ = nullptr;
  CancelHook* next_ = nullptr;
  bool attached_ = false;  // guarded by the call's mutex
};

/// One call that outlives its message, and how far it is. Thread-safe.
class BATCHRPC_EXPORT CallState final : public Pooled, public RefCounted<CallState> {
 public:
  /// `arguments` have memory of their own. `started`: the call has begun to run. The call keeps
  /// `function`, which runs or will run, until let_go(); null: it is not known yet.
  CallState(std::uint64_t call_id, CallArguments&& arguments, bool started,
            std::shared_ptr<ExposedFunction> function) noexcept
      : id(call_id),
        arguments_(std::move(arguments)),
        function_(std::move(function)),
        state_(started ? Phase::running : Phase::waiting) {}

  /// Sets the function. For the part that answers the call.
  void set_function(std::shared_ptr<ExposedFunction> function);
  /// Null: the call is over, or its function is not known yet.
  [[nodiscard]] std::shared_ptr<ExposedFunction> function();
  /// The node that is called; null: the call is over.
  [[nodiscard]] std::shared_ptr<LocalNode> node();
  /// Starts the call. False if it was cancelled before.
  [[nodiscard]] bool start();
  /// The arguments of a call that has started. For the part that runs it.
  [[nodiscard]] CallArguments& arguments() noexcept { return arguments_; }
  /// Ends the call: it is answered, and cannot be cancelled any more.
  void end() noexcept;
  /// Destroys, after end(), what only the answer needed. Contexts may still be there. For the part
  /// that answered the call.
  void let_go() noexcept;
  /// Cancels the call, because nobody waits for its answer. A call that has not started never will,
  /// and its arguments are destroyed here. Otherwise user code runs here that learns of it. Call
  /// this on a thread that decodes for the node.
  void cancel() noexcept { static_cast<void>(cancel(true)); }
  /// Cancels the call only if it has not started. False if it has, or is over.
  [[nodiscard]] bool cancel_if_waiting() noexcept { return cancel(false); }

  [[nodiscard]] bool cancelled() const noexcept {
    return phase_of(state_.load(std::memory_order_acquire)) == Phase::cancelled;
  }
  /// Whether the call has not begun to run, and may still begin.
  [[nodiscard]] bool waits() const noexcept {
    const std::uint8_t phase = phase_of(state_.load(std::memory_order_acquire));
    return phase == Phase::waiting ||
           (phase == Phase::running && in_line_.load(std::memory_order_relaxed));
  }
  /// Notes whether a call that has started only waits in line. It then counts as waiting.
  void set_in_line(bool in_line) noexcept { in_line_.store(in_line, std::memory_order_relaxed); }
  /// Whether the call is still being answered.
  [[nodiscard]] bool under_way() const noexcept {
    return is_under_way(state_.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::stop_token stop_token();
  [[nodiscard]] Future<void> when_cancelled();

  const std::uint64_t id;
  std::shared_ptr<ReplySink> sink;  ///< for the part that answers the call

 private:
  friend class CancelHook;
  friend class batchrpc::InFlightCalls;
  // One exchange decides what becomes of a call, because each call pays for it. A thread that looks
  // at the members behind the mutex holds the mutex and sets the bit kWatched. The thread that ends
  // the call then takes the mutex once, too, so these members stay until the look is over.
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
  // The parts that want to learn of a cancellation.
  struct Watch {
    std::stop_source stop{std::nostopstate};
    std::vector<Promise<void>> promises{};
  };

  bool cancel(bool also_started) noexcept;
  // Sets the bit kWatched, and returns the state before. The caller must hold the mutex.
  std::uint8_t look() noexcept { return state_.fetch_or(kWatched, std::memory_order_acq_rel); }
  [[nodiscard]] Task take_task() noexcept;
  [[nodiscard]] Watch& watch();

  // Its place in the list of a bucket of InFlightCalls, which guards it: the call behind it, and
  // the link to it. Null: it is in none. Then its neighbours in the order in which they came.
  CallState* next_kept_ = nullptr;
  CallState** link_to_it_ = nullptr;
  CallState* came_before_ = nullptr;
  CallState* next_come_ = nullptr;
  CallArguments arguments_;  // belong to the thread that starts the call, or cancels it before
  std::shared_ptr<ExposedFunction> function_;  // written by the part that answers the call
  CancelHook* hooks_ = nullptr;
  std::unique_ptr<Watch> watch_;  // null: nobody wants to learn of a cancellation
  SmallMutex mutex_;
  std::atomic<std::uint8_t> state_;
  std::atomic<bool> in_line_{false};
};

}  // namespace batchrpc::detail
