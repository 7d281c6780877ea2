#include "transport/embedded_core.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/nested_wait.hpp"

namespace batchrpc::detail {
namespace {

/// How many waits the calling thread has begun and ended within tasks of contexts.
const std::shared_ptr<std::atomic<std::uint64_t>>& waits_of_this_thread() {
  thread_local const auto waits = std::make_shared<std::atomic<std::uint64_t>>(0);
  return waits;
}

/// The context is run from within one of its tasks, and woken when the waiter is ready. What other
/// tasks of the context throw comes out of the wait.
class NestedRun {
 public:
  NestedRun(Waiter& waiter, asio::io_context& io, std::shared_ptr<std::atomic<bool>> has_others,
            int& depth)
      : waiter_(waiter), io_(io), has_others_(std::move(has_others)), depth_(depth) {
    ++depth_;
    waiter_.set_interrupt([](void* self) noexcept { static_cast<NestedRun*>(self)->wake(); }, this);
  }
  ~NestedRun() {
    waiter_.set_interrupt(nullptr, nullptr);
    ++*waits_;
    --depth_;
  }
  NestedRun(const NestedRun&) = delete;
  NestedRun& operator=(const NestedRun&) = delete;

 private:
  // Run by another thread while this one still waits, it shows that there are several.
  void wake() {
    asio::post(io_, [has_others = has_others_, waits = waits_, number = number_] {
      if (waits != waits_of_this_thread() && *waits == number) *has_others = true;
    });
  }

  Waiter& waiter_;
  asio::io_context& io_;
  const std::shared_ptr<std::atomic<bool>> has_others_;
  int& depth_;
  const std::shared_ptr<std::atomic<std::uint64_t>> waits_ = waits_of_this_thread();
  const std::uint64_t number_ = ++*waits_;
};

}  // namespace

EmbeddedCore::EmbeddedCore(asio::io_context& io)
    : EmbeddedCore(io, std::make_shared<Guest>(HostContext::of(io))) {}

EmbeddedCore::EmbeddedCore(asio::io_context& io, const std::shared_ptr<Guest>& guest)
    : LoopCore(guest), io_(io), guest_(guest) {}

void EmbeddedCore::stop() {
  constexpr auto kGrace = std::chrono::seconds(1);
  if (!posted_.close()) return;
  timers().stop();
  guest_->presence().wait_for_others(now() + kGrace);  // which may need the sockets
  guest_->leave();
  guest_->presence().wait_for_others(now() + kGrace);
}

// The tasks stay here: the context's threads would bring them in any order, and the context may
// keep what is posted for longer than the loop lives.
void EmbeddedCore::post(Task task) {
  if (!posted_.push(std::move(task))) return;
  asio::post(io_, [weak = weak_from_this()] {
    const auto self = std::static_pointer_cast<EmbeddedCore>(weak.lock());
    if (!self) return;
    self->guest_->run([self] {
      if (Task next = self->posted_.pop()) next();
    });
  });
}

bool EmbeddedCore::poll() {
  if (!io_.get_executor().running_in_this_thread()) return false;
  const Driven::Suspension others;
  timers().rearm();
  return io_.poll() != 0;
}

void EmbeddedCore::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  constexpr Duration kFirstLook = std::chrono::microseconds(20);
  constexpr Duration kLook = std::chrono::milliseconds(1);
  constexpr int kLyingWork = 16;
  thread_local int depth = 0;

  run_nested_wait_hook();
  if (waiter.ready()) return;
  const Driven::Suspension others;
  if (!io_.get_executor().running_in_this_thread()) return sleep_until_ready(waiter, deadline);
  if (is_nested_too_deep(depth)) throw NestedTooDeep();
  const NestedRun nested(waiter, io_, has_other_threads_, depth);
  timers().rearm();
  const auto work = asio::make_work_guard(io_);  // run_one() stops a context without work
  // Where others run the context too they may take the wake-up that is meant for this thread. So it
  // sleeps, and looks now and then for what they leave, rather than run the context; until they
  // leave much.
  Duration pause = kFirstLook;
  int found = 0;
  while (!waiter.ready()) {
    const TimePoint time = now();
    if (deadline && time >= *deadline) break;
    const auto next_look = [&](Duration after) {
      return deadline ? std::min(time + after, *deadline) : time + after;
    };
    if (io_.stopped()) {
      waiter.sleep(next_look(kLook));
    } else if (!*has_other_threads_) {
      io_.run_one_until(next_look(kLook));
    } else if (io_.poll_one() != 0) {
      pause = kFirstLook;
      if (++found == kLyingWork) *has_other_threads_ = false;
    } else {
      waiter.sleep(next_look(pause));
      pause = std::min(2 * pause, kLook);
    }
  }
}

}  // namespace batchrpc::detail
