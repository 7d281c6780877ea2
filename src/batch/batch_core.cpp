#include "batchrpc/batch/batch_core.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/asio_loop.hpp"

namespace batchrpc::detail {
namespace {

void check(bool good, const std::string& what) {
  if (!good) throw InvalidArgument("BatchOptions::" + what);
}

}  // namespace

BatchRow::~BatchRow() = default;

// The task that starts a batch. One that is destroyed without having run ends the batcher: then the
// executor, or its node, is gone.
class BatchCore::Start {
 public:
  explicit Start(std::weak_ptr<BatchCore> core) : core_(std::move(core)) {}
  Start(Start&& other) noexcept : core_(std::move(other.core_)) {}
  Start& operator=(Start&&) = delete;
  ~Start() {
    if (const auto core = core_.lock()) core->end("what ran the batcher's handler is gone");
  }
  void operator()() {
    const auto core = core_.lock();
    core_.reset();
    if (core) core->begin();
  }

 private:
  std::weak_ptr<BatchCore> core_;
};

BatchCore::BatchCore(BatchOptions options, RunBatch run)
    : options_(std::move(options)), run_(std::move(run)) {
  check(options_.max_size >= 1, "max_size must be at least 1");
  check(options_.max_wait >= Duration::zero(), "max_wait is not negative");
  check(options_.max_queue >= options_.max_size,
        "max_queue (" + std::to_string(options_.max_queue) + ") must be at least max_size (" +
            std::to_string(options_.max_size) + ")");
  check(!options_.short_handler || options_.executor == nullptr,
        "short_handler and executor exclude each other");
}

BatchCore::~BatchCore() {
  if (!host_) return;
  if (timer_ != 0) host_->loop->cancel(timer_);
  for (const std::uint64_t handler : {change_handler_, end_handler_}) {
    if (handler != 0) host_->forget(handler);
  }
  for (const auto& row : queue_) {
    row->fail(std::make_exception_ptr(ShutDown("the batcher was destroyed while this row waited")));
  }
}

void BatchCore::exposed_on(const Host& host) {
  const std::weak_ptr<BatchCore> weak = weak_from_this();
  const std::unique_lock lock(mutex_);
  if (host_) return;
  host_ = host;
  executor_ = options_.executor        ? options_.executor
              : options_.short_handler ? host.loop_tasks
                                       : host.workers;
  if (!options_.all_of.empty()) {
    change_handler_ = host.on_change([weak] {
      if (const auto self = weak.lock()) self->look_again();
    });
  }
  end_handler_ = host.on_end([weak] {
    if (const auto self = weak.lock()) self->end("the batcher's node has ended");
  });
}

// A batcher without a node has a loop, and so a thread and a clock, of its own.
void BatchCore::ensure_host(std::unique_lock<std::mutex>& lock) {
  if (host_) return;
  if (!options_.all_of.empty()) {
    throw InvalidArgument(
        "BatchOptions::all_of names peers, which only a node knows: expose the batcher on one "
        "before its first row");
  }
  lock.unlock();
  std::shared_ptr<Loop> loop = AsioLoop::start();
  Host host;
  host.workers = loop;
  host.loop_tasks = loop;
  host.loop = loop;
  host.is_live = [](std::string_view) { return true; };
  host.on_change = [](const std::function<void()>&) -> std::uint64_t { return 0; };
  host.on_end = host.on_change;
  host.forget = [](std::uint64_t) {};
  exposed_on(host);
  lock.lock();
}

void BatchCore::add(std::unique_ptr<BatchRow>& row) {
  std::unique_lock lock(mutex_);
  if (closed_.empty()) ensure_host(lock);
  if (!closed_.empty()) throw ShutDown(closed_);
  if (queue_.size() >= options_.max_queue) {
    throw Overloaded("the batcher's queue is full (" + std::to_string(options_.max_queue) +
                     " rows, BatchOptions::max_queue); try again later");
  }
  row->arrived = host_->loop->now();
  if (const CallContext* call = CallContext::current()) row->caller = call->shared_caller();
  queue_.push_back(std::move(row));
  start_if_due(lock);
}

void BatchCore::flush() {
  std::unique_lock lock(mutex_);
  if (queue_.empty()) return;
  flushing_ = true;
  start_if_due(lock);
}

void BatchCore::close() { end("the batcher is closed"); }

void BatchCore::end(const std::string& why) {
  std::deque<std::unique_ptr<BatchRow>> rows;
  {
    const std::lock_guard lock(mutex_);
    if (closed_.empty()) closed_ = why;
    rows.swap(queue_);
  }
  for (const auto& row : rows) {
    row->fail(std::make_exception_ptr(ShutDown(why + "; this row had waited")));
  }
}

bool BatchCore::all_are_there() const {
  const auto first = queue_.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.max_size));
  return std::all_of(options_.all_of.begin(), options_.all_of.end(), [&](const std::string& name) {
    const bool there = std::any_of(
        first, last, [&](const auto& row) { return row->caller && row->caller->name == name; });
    return there || !host_->is_live(name);
  });
}

bool BatchCore::is_due(TimePoint now) const {
  if (queue_.empty()) return false;
  if (flushing_ || queue_.size() >= options_.max_size) return true;
  const bool waits = options_.max_wait > Duration::zero();
  if (!waits && options_.all_of.empty()) return true;
  if (waits && now - queue_.front()->arrived >= options_.max_wait) return true;
  return !options_.all_of.empty() && all_are_there();
}

// Lets go of the lock.
void BatchCore::start_if_due(std::unique_lock<std::mutex>& lock) {
  if (running_) return;
  if (!is_due(host_->loop->now())) {
    arm_timer();
    return;
  }
  running_ = true;
  lock.unlock();
  try {
    executor_->post(Start(weak_from_this()));
  } catch (...) {  // NOLINT: the task that was not taken has ended the batcher
  }
}

// The rows are taken when the handler begins, so that those which come meanwhile go along.
void BatchCore::begin() {
  Rows rows;
  {
    const std::lock_guard lock(mutex_);
    const auto count = static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.max_size));
    const auto first = queue_.begin();
    rows.assign(std::make_move_iterator(first), std::make_move_iterator(first + count));
    queue_.erase(first, first + count);
    flushing_ = false;
  }
  run(std::move(rows));
}

void BatchCore::arm_timer() {
  if (queue_.empty() || options_.max_wait == Duration::zero()) return;
  const TimePoint due = queue_.front()->arrived + options_.max_wait;
  if (timer_ != 0 && timer_at_ == due) return;
  if (timer_ != 0) host_->loop->cancel(timer_);
  timer_at_ = due;
  timer_ = host_->loop->schedule(due, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->timer_ = 0;
    }
    self->look_again();
  });
}

void BatchCore::look_again() {
  std::unique_lock lock(mutex_);
  start_if_due(lock);
}

void BatchCore::run(Rows rows) {
  if (rows.empty()) {  // closed meanwhile
    const std::lock_guard lock(mutex_);
    running_ = false;
    return;
  }
  run_(std::move(rows)).then([self = shared_from_this()](const Result<void>&) {
    std::unique_lock lock(self->mutex_);
    self->running_ = false;
    self->start_if_due(lock);
  });
}

}  // namespace batchrpc::detail
