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

/// What a promise and its future share. Not for users; the library's own layers may derive from
/// State<T> to keep what belongs to a future (a pending call, say) in the future's one allocation.
namespace batchrpc::detail {

class StateBase;

/// What is to be done when a state completes. It lives inside whatever waits (a continuation's own
/// state, a coroutine's frame, a blocked thread's stack), so that waiting allocates nothing. `run`
/// cannot throw by its type. The source lives until `run` returns; the callback itself may be gone
/// by then.
struct Callback {
  using Run = void (*)(Callback& self, StateBase& source) noexcept;

  Callback(Run run_function, bool moves_the_value) noexcept
      : run(run_function), consumes(moves_the_value) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  Callback* next = nullptr;
  Run run;
  /// Moves the value away, so it must not run while a callback that looks at it has not returned.
  bool consumes;
  /// Comes with a reference to its source, which whoever runs it has to release.
  bool has_reference = false;

 protected:
  ~Callback() = default;
};

/// The part of a shared state that does not depend on the value's type: reference count,
/// completion, callbacks.
///
/// `head_` is everything that threads race for. It is 0 or a stack of callbacks while the value is
/// pending; after that it has the bit kReady, and either both bits of kIdle, or, while some thread
/// runs callbacks, a stack of those that were added meanwhile. So callbacks run in the order in
/// which they were added, one after the other (but for those that are nested in one that waits),
/// whichever threads complete and add. Nothing here locks, and a thread that runs callbacks does so
/// from a queue of its own, never recursively (see src/future/state.cpp).
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
  /// Whether there are no references but the caller's `count`.
  [[nodiscard]] bool holds_all(std::uint32_t count) const noexcept {
    return references_.load(std::memory_order_acquire) == count;
  }

  /// Whether there is a result.
  [[nodiscard]] bool ready() const noexcept {
    return (head_.load(std::memory_order_acquire) & kReady) != 0;
  }
  /// Whether there is a result and all callbacks added so far have returned, so that it may be
  /// moved.
  [[nodiscard]] bool idle() const noexcept {
    return head_.load(std::memory_order_acquire) == kIdle;
  }

  /// Makes the result, which was stored before, public; wakes waiting threads, then runs the
  /// callbacks: here, or, when called from a callback, as soon as that has returned. Consumes a
  /// reference. Once.
  void complete() noexcept {
    // Before head_ is read: whoever adds a callback has a reference.
    const bool alone = holds_all(1);
    std::uintptr_t head = head_.load(std::memory_order_acquire);
    if (head == 0 &&
        (alone || head_.compare_exchange_strong(head, kIdle, std::memory_order_acq_rel))) {
      release();
    } else {
      complete_with_callbacks();
    }
  }

  /// The same for a state that nobody else knows of yet.
  void set_idle() noexcept { head_.store(kIdle, std::memory_order_release); }

  /// Has `callback` run after those that were added before: at once if all these have run.
  void add(Callback& callback) noexcept;
  /// The same, and takes over a reference: nobody will add another one.
  void add_last(Callback& callback) noexcept;
  /// The same as add(), but does nothing and returns false when head_ has all of `bits`.
  bool add_unless(std::uintptr_t bits, Callback& callback) noexcept;

  /// Has what would complete this give up, and completes it with Cancelled. False when there is
  /// nobody to be asked, or it is complete.
  virtual bool cancel() noexcept;
  /// Before anybody else knows of the state: what happens when its last future is dropped.
  void set_cancelled_when_dropped() noexcept { cancelled_when_dropped_ = true; }
  /// By a future that is about to release its reference.
  void dropped() noexcept {
    if (cancelled_when_dropped_ && !ready() && holds_all(2)) cancel();
  }

  /// Blocks until ready, or until `deadline` on the thread's wait context. Returns ready(). Throws
  /// Overloaded in a callback that runs while another waits, and so on, 256 deep.
  bool wait(const std::optional<TimePoint>& deadline);
  /// The same with a deadline of `timeout` from now.
  bool wait_for(Duration timeout);
  void wait_until_ready() { wait(std::nullopt); }
  /// Blocks until idle, for somebody who wants to move the result.
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
  bool extra_reference_ = false;  // whether the thread that runs the callbacks has two
  std::atomic<std::uintptr_t> head_{0};
  // Of the thread that runs the callbacks:
  Callback* to_run_ = nullptr;         // oldest first
  StateBase* next_running_ = nullptr;  // in that thread's queue
};

/// A shared state with its result.
template <class T>
class State : public StateBase {
 public:
  explicit State(std::uint32_t references) noexcept : StateBase(references) {}
  ~State() override {
    if (stored_) result_.~Result<T>();
  }

  /// Stores the result, in place of one stored before, for complete() to make public. Throws what
  /// moving the value throws; then nothing is stored.
  void store(Result<T> result) noexcept(std::is_nothrow_move_constructible_v<Result<T>>) {
    if (std::exchange(stored_, false)) result_.~Result<T>();
    ::new (static_cast<void*>(&result_)) Result<T>(std::move(result));
    stored_ = true;
  }

  /// The result; only when stored or ready().
  [[nodiscard]] const Result<T>& result() const noexcept { return result_; }

  /// The result, moved; in a callback or when idle(), by the one who owns the future.
  [[nodiscard]] Result<T> take() noexcept(std::is_nothrow_move_constructible_v<Result<T>>) {
    return std::move(result_);
  }

 private:
  union {
    Result<T> result_;
  };
};

/// Throws InvalidArgument: a future or promise that has no state was used.
[[noreturn]] BATCHRPC_EXPORT void throw_no_state(const char* what);
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr broken_promise();
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr dropped_by_executor();
[[nodiscard]] BATCHRPC_EXPORT std::exception_ptr empty_future_returned();

}  // namespace batchrpc::detail
