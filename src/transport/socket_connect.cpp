#include "transport/socket_connect.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "transport/descriptor.hpp"
#include "transport/socket_address.hpp"
#include "transport/socket_stream.hpp"

namespace batchrpc::detail {
namespace {

constexpr Duration kBacklogPause = std::chrono::milliseconds(1);

/// Returns which of two errors to report. A refusal shows that the host is up, so it outranks a
/// missing route. A timeout outranks both, since nothing is known then.
std::error_code worse(std::error_code a, std::error_code b) noexcept {
  const auto rank = [](std::error_code error) {
    if (!error) return 0;
    if (error == std::errc::timed_out) return 3;
    if (error == std::errc::connection_refused) return 2;
    return 1;
  };
  return rank(b) >= rank(a) ? b : a;
}

/// TCP may connect a socket to itself if nobody listens on a port of this machine's ephemeral
/// range.
bool is_connected_to_itself(int fd) noexcept {
  const SocketAddress own = own_address(fd);
  const SocketAddress peer = peer_address(fd);
  return own.family() != AF_UNIX && own.size == peer.size &&
         std::memcmp(&own.storage, &peer.storage, own.size) == 0;
}

}  // namespace

/// One connect: resolves, tries the addresses in turn, reports once. It runs on the loop, except
/// start() and stop().
class SocketConnect : public std::enable_shared_from_this<SocketConnect> {
 public:
  SocketConnect(SocketConnects& owner, Address address, TimePoint deadline,
                Transport::ConnectHandler handler)
      : owner_(owner.weak_from_this()),
        core_(owner.core_),
        address_(std::move(address)),
        deadline_(deadline),
        handler_(std::move(handler)) {}

  void start(Resolver& resolver) {
    std::unique_lock lock(mutex_);
    SocketAddress target;
    if (address_.scheme() != "tcp") {
      targets_.push_back(unix_address(address_));
    } else if (const TcpAddress parts = TcpAddress::of(address_); numeric_address(parts, target)) {
      targets_.push_back(target);
    } else {
      return resolve(resolver, parts);
    }
    lock.unlock();
    core_->post([self = shared_from_this(), attempt = attempt_] { self->next(attempt, {}); });
  }

  /// Any thread: destroys the handler, unless it is being called already.
  void stop() {
    Transport::ConnectHandler handler;  // destroyed after the lock
    const std::lock_guard lock(mutex_);
    std::swap(handler, handler_);
    end_attempt();
  }

 private:
  [[nodiscard]] bool is_over(int attempt) const { return !handler_ || attempt != attempt_; }

  void resolve(Resolver& resolver, const TcpAddress& parts) {
    give_up_at(deadline_);
    resolver.resolve(weak_from_this(), parts.host, parts.port,
                     [weak = weak_from_this(), attempt = attempt_](FoundAddresses found) {
                       const auto self = weak.lock();
                       if (!self) return;
                       self->core_->post([self, attempt, found = std::move(found)]() mutable {
                         self->resolved(attempt, std::move(found));
                       });
                     });
  }

  void resolved(int attempt, FoundAddresses found) {
    {
      const std::lock_guard lock(mutex_);
      if (is_over(attempt)) return;
      targets_ = std::move(found.addresses);
    }
    next(attempt, found.error);
  }

  /// Called when `attempt` has failed: tries the next address, or reports.
  void next(int attempt, std::error_code failure) {
    std::unique_lock lock(mutex_);
    if (is_over(attempt)) return;
    end_attempt();
    failure_ = worse(failure_, failure);
    for (; next_target_ < targets_.size(); ++next_target_) {
      const TimePoint now = LoopCore::now();
      if (now >= deadline_) {
        failure_ = std::make_error_code(std::errc::timed_out);
        break;
      }
      const SocketAddress& target = targets_[next_target_];
      std::error_code error;
      const int fd = make_socket(target.family(), error);
      if (fd >= 0) {
        descriptor_ = std::make_shared<Descriptor>(core_->site(), fd);
        if (::connect(fd, target.get(), target.size) == 0) {
          // A Unix socket connects at once or not at all.
          const auto stranger = target.family() == AF_UNIX ? other_user(fd) : std::nullopt;
          if (!stranger) return succeed(std::move(lock));
          error = stranger->error();
          if (const auto owner = owner_.lock()) owner->warn_of(*stranger, address_);
        } else if (errno == EINPROGRESS || errno == EINTR) {
          // The rest of the time is for the other addresses.
          const auto left = static_cast<Duration::rep>(targets_.size() - next_target_++);
          return wait(now + (deadline_ - now) / left);
        } else if (errno == EAGAIN) {
          return pause(now);
        } else {
          error = connect_error(errno);
        }
        end_attempt();
      }
      failure_ = worse(failure_, error);
    }
    if (!failure_) failure_ = std::make_error_code(std::errc::host_unreachable);
    report(std::move(lock), nullptr, failure_);
  }

  void wait(TimePoint until) {
    give_up_at(until);
    descriptor_->wait_writable(
        [self = shared_from_this(), attempt = attempt_] { self->writable(attempt); });
  }

  /// A Unix socket's backlog is full; only time can help.
  void pause(TimePoint now) {
    end_attempt();
    timer_ = core_->schedule(
        std::min(now + kBacklogPause, deadline_),
        [self = shared_from_this(), attempt = attempt_] { self->next(attempt, {}); });
  }

  void give_up_at(TimePoint when) {
    timer_ = core_->schedule(when, [self = shared_from_this(), attempt = attempt_] {
      self->next(attempt, std::make_error_code(std::errc::timed_out));
    });
  }

  void writable(int attempt) {
    std::unique_lock lock(mutex_);
    if (is_over(attempt)) return;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(descriptor_->fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && is_connected_to_itself(descriptor_->fd())) error = ECONNREFUSED;
    if (error == 0) return succeed(std::move(lock));
    lock.unlock();
    next(attempt, connect_error(error));
  }

  void succeed(std::unique_lock<std::mutex> lock) {
    auto stream =
        std::make_unique<SocketStream>(core_, std::move(descriptor_), address_.to_string(), nullptr,
                                       address_.scheme() != "tcp" ? proof_of_user() : nullptr);
    report(std::move(lock), std::move(stream), {});
  }

  void report(std::unique_lock<std::mutex> lock, std::unique_ptr<Stream> stream,
              std::error_code error) {
    auto handler = std::exchange(handler_, nullptr);
    end_attempt();
    lock.unlock();
    if (const auto owner = owner_.lock()) owner->remove(shared_from_this());
    handler(std::move(stream), error);
  }

  /// Results of the attempt that arrive later are ignored.
  void end_attempt() {
    ++attempt_;
    if (descriptor_) std::exchange(descriptor_, nullptr)->close();
    if (timer_ != 0) core_->timers().cancel(std::exchange(timer_, 0));
  }

  const std::weak_ptr<SocketConnects> owner_;
  const std::shared_ptr<LoopCore> core_;
  const Address address_;
  const TimePoint deadline_;

  std::mutex mutex_;
  Transport::ConnectHandler handler_;  // empty once it is over
  std::vector<SocketAddress> targets_;
  std::size_t next_target_ = 0;
  std::error_code failure_;
  int attempt_ = 0;
  std::shared_ptr<Descriptor> descriptor_;
  TimerId timer_ = 0;
};

void SocketConnects::start(const Address& address, TimePoint deadline,
                           Transport::ConnectHandler handler) {
  const auto connect =
      std::make_shared<SocketConnect>(*this, address, deadline, std::move(handler));
  {
    const std::lock_guard lock(mutex_);
    under_way_.insert(connect);
  }
  connect->start(resolver_);
}

void SocketConnects::warn_of(const OtherUser& stranger, const Address& address) {
  strangers_.write(log_, LogLevel::warning, LoopCore::now(),
                   "does not connect to " + address.to_string() + ": " + stranger.text());
}

void SocketConnects::remove(const std::shared_ptr<SocketConnect>& connect) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(connect);
}

void SocketConnects::stop() {
  resolver_.stop();  // whose handlers hold the core for a moment: it must not be their last to go
  std::unordered_set<std::shared_ptr<SocketConnect>> under_way;
  {
    const std::lock_guard lock(mutex_);
    under_way.swap(under_way_);
  }
  for (const auto& connect : under_way)
    connect->stop();
}

}  // namespace batchrpc::detail
