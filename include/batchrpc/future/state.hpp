#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/base/ref.hpp"
#include "batchrpc/base/result.hpp"

/// The state that a promise and its future share. Not for users. The library's own layers may
/// derive from State<T> to keep data of a future, such as a pending call, in the same allocation.
namespace batchrpc::detail {

class StateBase;

/// A function to run when a state completes. It is part of the object that waits (a continuation's
/// state, a coroutine's frame, a blocked thread's stack), so that waiting allocates nothing. The
/// type of `run` forbids exceptions. The source lives until `run` returns; the callback itself may
/// be gone by then.
struct Callback {
  using Run = void (*)(Callback& self, StateBase& source) noexcept;

  Callback(Run run_function, bool moves_the_value) noexcept
      : run(run_function), consumes(moves_the_value) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  Callback* next = nullptr;
  Run run;
  /// Whether it moves the value away. It must then not run before a callback that looks at the
  /// value has returned.
  bool consumes;
  /// Whether it comes with a reference to its source, which the code that runs it must release.
  bool has_reference = false;

 protected:
  ~Callback() = default;
};

/// The part of a shared state that does not depend on the value's type: reference count,
/// completion, callbacks.
///
/// Threads race only for `head_`. While the value is pending it is 0 or a stack of callbacks. After
/// completion it has the bit kReady. Then it has either both bits of kIdle or, while a thread runs
/// callbacks, a stack of the callbacks added since. So callbacks run one at a time in the order in
/// which they were added, whichever threads complete and add. Only callbacks nested in one that
/// waits overlap with it. Nothing here locks. A thread runs callbacks from a queue of its own,
/// never recursively (see src/future/state.cpp).
class BATCHRPC_EXPORT StateBase : public Pooled {
 public:
  static constexpr std::uintptr_t kReady = 1;
  static constexpr std::uintptr_t kIdle = 3;
  static constexpr std::uintptr_t kNever = 4;  // a bit that head_ never has

  explicit StateBase(std::uint32_t references) noexcept : references_(references) {}
  virtual ~StateBase();
  StateBase(const StateBase&) = delete;
  StateBase& operator=(const StateBase&) = delete;

  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release(std::uint32_t count = 1) noexcept {
    if (holds_all(count) || references_.fetch_sub(count, std::memory_order_acq_rel) == count) {
      delete this;
    }
  }
  /// Whether the caller's `count` references are the only ones.
  [[nodiscard]] bool holds_all(std::uint32_t count) const noexcept {
    return references_.load(std::memory_order_acquire) == count;
  }

  /// Whether there is a result.
  [[nodiscard]] bool ready() const noexcept {
    return (head_.load(std::memory_order_acquire) & kReady) != 0;
  }
  /// Whether there is a result and all callbacks added so far have returned, so that the result may
  /// be moved.
  [[nodiscard]] bool idle() const noexcept {
    return head_.load(std::memory_order_acquire) == kIdle;
  }

  /// Publishes the result that was stored before and wakes waiting threads. Then it runs the
  /// callbacks: here, or, if called from a callback, as soon as that has returned. Consumes a
  /// reference. Call it once.
  void complete() noexcept {
    // Checked before head_ is read, because a thread that adds a callback holds a reference.
    const bool alone = holds_all(1);
    std::uintptr_t head = head_.load(std::memory_order_acquire);
    if (head == 0 &&
        (alone || head_.compare_exchange_strong(head, kIdle, std::memory_order_acq_rel))) {
      release();
    } else {
      complete_with_callbacks();
    }
  }

  /// The same for a state that no other thread knows yet.
  void set_idle() noexcept { head_.store(kIdle, std::memory_order_release); }

  /// Runs `callback` after the callbacks added before it, at once if all of those have run.
  void add(Callback& callback) noexcept;
  /// The same, and takes over a reference. No callback may be added afterwards.
  void add_last(Callback& callback) noexcept;
  /// Like add(), but does nothing and returns false if head_ has all of `bits`.
  bool add_unless(std::uintptr_t bits, Callback& callback) noexcept;

  /// Cancels the operation that would complete this state, and completes it with Cancelled. Returns
  /// false if there is no such operation or the state is complete.
  virtual bool cancel() noexcept;
  /// Makes dropping the last future cancel the operation. Call it before another thread knows of
  /// the state.
  void set_cancelled_when_dropped() noexcept { cancelled_when_dropped_ = true; }
  /// A future calls this before it releases its reference.
  void dropped() noexcept {
    if (cancelled_when_dropped_ && !ready() && holds_all(2)) cancel();
  }

  /// Blocks until ready, or until `deadline` on the thread's wait context. Returns ready(). Throws
  /// Overloaded in a callback if 256 waits are nested already.
  bool wait(const std::optional<TimePoint>& deadline);
  /// The same with a deadline of `timeout` from now.
  bool wait_for(Duration timeout);
  void wait_until_ready() { wait(std::nullopt); }
  /// Blocks until idle, for a caller that wants to move the result.
  void wait_until_idle();

 private:
  friend class Trampoline;
  friend struct BlockedThread;

  static Callback* callbacks(std::uintptr_t head) noexcept {
    return reinterpret_cast<Callback*>(head & ~kIdle);  // NOLINT: the low bits are ours
  }

  void complete_with_callbacks() noexcept;
  std::uintptr_t push(Callback& callback, std::uintptr_t bits) noexcept;
  void run_callbacks(Callback* newest) noexcept;
  Callback* next_callback(bool in_callback) noexcept;
  bool become_idle_and_release() noexcept;
  bool remove(Callback& callback) noexcept;
  void put_back(Callback* newest) noexcept;

  std::atomic<std::uint32_t> references_;

 protected:
  bool stored_ = false;

 private:
  bool cancelled_when_dropped_ = false;
  bool extra_reference_ = false;  // whether the thread that runs the callbacks holds two
  std::atomic<std::uintptr_t> head_{0};
  // Only the thread that runs the callbacks uses these:
  Callback* to_run_ = nullptr;         // oldest first
  StateBase* next_running_ = nullptr;  // the next state in its queue
};

/// A shared state with its result.
template <class T>
class State : public StateBase {
 public:
  explicit State(std::uint32_t references) noexcept : StateBase(references) {}
  ~State() override {
    if (stored_) result_.~Result<T>();
  }

  /// Stores the result, replacing an earlier one; complete() publishes it. Throws if moving the
  /// value throws; then nothing is stored.
  void store(Result<T> result) noexcept(std::is_nothrow_move_constructible_v<Result<T>>) {
    if (std::exchange(stored_, false)) result_.~Result<T>();
    ::new (static_cast<void*>(&result_)) Result<T>(std::move(result));
    stored_ = true;
  }

  /// The result. Call it only after store() or if ready().
  [[nodiscard]] const Result<T>& result() const noexcept { return result_; }

  /// Moves the result out. Only the owner of the future may call it, in a callback or if idle().
  [[nodiscard]] Result<T> take() noexcept(std::is_nothrow_move_constructible_v<Result<T>>) {
    return std::move(result_);
  }

 private:
  union {
    Result<T> result_;
  };
};

/// Throws InvalidArgument: a future or promise without a state was used.
[[noreturn]] BATCHRPC_EXPORT void throw_no_state(const char* what);
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr broken_promise();
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr dropped_by_executor();
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr empty_future_returned();

}  // namespace batchrpc::detail
