#include "transport/program_thread.hpp"

#include <algorithm>
#include <utility>

#include "base/start_thread.hpp"

namespace batchrpc::detail {

ProgramThread::ProgramThread(std::shared_ptr<VirtualLoop> loop, std::weak_ptr<VirtualHost> host,
                             std::function<Duration()> wake_delay, std::function<void()> program)
    : loop_(std::move(loop)),
      host_(std::move(host)),
      wake_delay_(std::move(wake_delay)),
      program_(std::move(program)) {}

ProgramThread::~ProgramThread() {
  if (thread_.joinable()) thread_.join();
}

void ProgramThread::wake() noexcept {
  const auto host = host_.lock();
  if (!host) return;
  host->schedule_at_loop(loop_->now() + wake_delay_(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->run();
  });
}

void ProgramThread::run() {
  if (ended_ || ending_) return;
  if (!thread_.joinable()) thread_ = start_thread("a simulated program", [this] { work(); });
  give_turn();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void ProgramThread::end() {
  if (ended_) return;
  ending_ = true;
  if (!thread_.joinable()) {
    ended_ = true;
    program_ = nullptr;
    return;
  }
  while (true) {
    give_turn();
    if (ended_) break;
    // A destructor of the program's waits, without a deadline.
    if (!loop_->run_next(TimePoint::max())) {
      throw VirtualDeadlock(
          "a program that is ending waits in a destructor for something that never happens");
    }
  }
}

void ProgramThread::give_turn() {
  const auto outer = std::exchange(loop_->program_, this);
  {
    std::unique_lock lock(mutex_);
    turn_ = true;
    turned_.notify_all();
    turned_.wait(lock, [this] { return !turn_; });
  }
  loop_->program_ = outer;
}

void ProgramThread::give_back() {
  const std::lock_guard lock(mutex_);
  turn_ = false;
  turned_.notify_all();
}

void ProgramThread::await_turn() {
  std::unique_lock lock(mutex_);
  turned_.wait(lock, [this] { return turn_; });
}

void ProgramThread::work() {
  await_turn();
  try {
    const WaitScope scope(host_.lock());
    program_();
  } catch (const ProgramEnded&) {
  } catch (...) {
    thrown_ = std::current_exception();
  }
  program_ = nullptr;
  ended_ = true;
  give_back();
}

void ProgramThread::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  const auto host = host_.lock();
  const auto is_over = [&] { return waiter.ready() || (deadline && loop_->now() >= *deadline); };
  // What must not be left behind when the program is ended here.
  struct Wait {
    ~Wait() {
      waiter.set_interrupt(nullptr, nullptr);
      if (host && timer != 0) host->cancel(timer);
    }
    Waiter& waiter;
    VirtualHost* host;
    TimerId timer;
  } waiting{waiter, host.get(), 0};

  if (deadline && host && !ending_ && !is_over()) {
    waiting.timer = host->schedule_at_loop(*deadline, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->run();
    });
  }
  waiter.set_interrupt([](void* self) noexcept { static_cast<ProgramThread*>(self)->wake(); },
                       this);
  while (true) {
    if (ending_) {
      // One that waits for a time lets it pass, so that who catches everything and waits on comes
      // to an end as well.
      if (deadline && !waiter.ready()) {
        loop_->now_ = std::max(loop_->now_, *deadline);
      }
      if (std::uncaught_exceptions() == 0) throw ProgramEnded();
    }
    if (is_over()) return;
    give_back();
    await_turn();
  }
}

}  // namespace batchrpc::detail
