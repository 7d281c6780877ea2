#include "transport/host_context.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "transport/driven.hpp"

namespace batchrpc::detail {
namespace {

class HostService final : public asio::execution_context::service {
 public:
  using key_type = HostService;
  inline static asio::execution_context::id id;

  explicit HostService(asio::execution_context& context)
      : service(context),
        host(std::make_shared<HostContext>(static_cast<asio::io_context&>(context))) {}

  const std::shared_ptr<HostContext> host;

 private:
  void shutdown() override { host->end(); }
};

}  // namespace

std::shared_ptr<HostContext> HostContext::of(asio::io_context& io) {
  return asio::use_service<HostService>(io).host;
}

/// The calling thread hands out events. If a handler waits or throws, another task of the context
/// continues.
class HostContext::HandingOut final : public Driven {
 public:
  explicit HandingOut(HostContext& host) noexcept : Driven(&host.events_), host_(host) {}
  ~HandingOut() { leave(); }

  [[nodiscard]] bool has_left() const noexcept { return has_left_; }
  void leave() {
    if (!std::exchange(has_left_, true)) host_.go_on();
  }

 private:
  void suspend() override {
    leave();
    active_ = false;
  }
  void resume() override { active_ = true; }

  HostContext& host_;
  bool has_left_ = false;
};

HostContext::HostContext(asio::io_context& io)
    : io_(io),
      turn_([&io](Task task) { asio::post(io, std::move(task)); }),
      reactor_(std::make_shared<Reactor>()),
      watch_(std::make_unique<asio::posix::stream_descriptor>(io, reactor_->fd())) {}

// A forked child leaves the descriptor as it is: Asio would take it out of the epoll set that the
// child shares with its parent.
void HostContext::end() {
  turn_.clear();
  const std::lock_guard lock(mutex_);
  if (!watch_) return;
  if (::getpid() != process_) {
    (void)watch_.release();
    return;
  }
  watch_->release();
  watch_.reset();
}

void HostContext::hold() {
  const std::lock_guard lock(mutex_);
  if (holds_++ == 0 && doing_ == Doing::nothing) watch();
}

void HostContext::release() {
  const std::lock_guard lock(mutex_);
  if (--holds_ == 0 && doing_ == Doing::watching && watch_) watch_->cancel();
}

void HostContext::watch() {
  if (!watch_) return;
  doing_ = Doing::watching;
  watch_->async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const asio::error_code&) { self->collect(); });
}

void HostContext::collect() {
  {
    const std::lock_guard lock(mutex_);
    doing_ = holds_ > 0 ? Doing::handing_out : Doing::nothing;
    if (holds_ == 0) return;
  }
  next_event_ = 0;
  end_of_events_ = reactor_->wait(events_, false);
  hand_out();
}

// A quarter of them, then what their handlers have posted has its turn: between tasks the context
// looks at its own sockets, which costs more than a handler.
void HostContext::hand_out() {
  HandingOut now(*this);
  const std::size_t quarter = std::clamp<std::size_t>(end_of_events_ / 4, 1, 16);
  for (std::size_t i = 0; i < quarter && next_event_ < end_of_events_; ++i) {
    if (io_.stopped()) return;
    const epoll_event event = events_[next_event_++];
    if (next_event_ == end_of_events_) now.leave();
    reactor_->dispatch(event);
    if (now.has_left()) return;
  }
}

void HostContext::go_on() {
  if (next_event_ < end_of_events_) {
    asio::post(io_, [self = shared_from_this()] { self->hand_out(); });
    return;
  }
  const std::lock_guard lock(mutex_);
  doing_ = Doing::nothing;
  if (holds_ > 0) watch();
}

}  // namespace batchrpc::detail
