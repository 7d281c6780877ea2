#include "tls/off_loop.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "transport/signals_blocked.hpp"

namespace batchrpc::tls {

struct OffLoop::State {
  std::mutex mutex;                 // guards what follows
  std::condition_variable changed;  // a task was added, a thread has ended, or all must
  std::deque<Task> tasks;
  std::vector<std::thread::id> threads;
  std::size_t idle = 0;  // the threads that wait for tasks
  bool stopped = false;
};

OffLoop::OffLoop() : state_(std::make_shared<State>()) { state_->threads.reserve(kMostThreads); }

OffLoop::~OffLoop() {
  std::deque<Task> dropped;  // destroyed without the lock
  std::unique_lock lock(state_->mutex);
  state_->stopped = true;
  dropped.swap(state_->tasks);
  state_->changed.notify_all();
  state_->changed.wait(lock, [&] {
    const auto others = [](std::thread::id id) { return id != std::this_thread::get_id(); };
    return std::none_of(state_->threads.begin(), state_->threads.end(), others);
  });
  lock.unlock();
}

void OffLoop::post(Task task) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->idle <= state_->tasks.size() && state_->threads.size() < kMostThreads) {
      const detail::SignalsBlocked blocked;
      try {
        std::thread thread([state = state_] { work(state); });
        state_->threads.push_back(thread.get_id());
        thread.detach();
      } catch (const std::system_error&) {  // there can be no more threads
      }
    }
    if (!state_->threads.empty()) {
      state_->tasks.push_back(std::move(task));
      state_->changed.notify_one();
      return;
    }
  }
  task();
}

// The thread begins while its maker holds the mutex.
void OffLoop::work(const std::shared_ptr<State>& state) {
  constexpr std::chrono::seconds kIdleTime(1);
  std::unique_lock lock(state->mutex);
  while (true) {
    ++state->idle;
    state->changed.wait_for(lock, kIdleTime,
                            [&] { return state->stopped || !state->tasks.empty(); });
    --state->idle;
    if (state->tasks.empty()) break;
    Task task = std::move(state->tasks.front());
    state->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // destroyed without the lock
    lock.lock();
  }
  OPENSSL_thread_stop();  // the thread may still be ending when the process does
  std::erase(state->threads, std::this_thread::get_id());
  state->changed.notify_all();
}

}  // namespace batchrpc::tls
