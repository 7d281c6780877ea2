#include "transport/socket_listener.hpp"

#include <netdb.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/log_limit.hpp"
#include "base/system_error_text.hpp"
#include "batchrpc/base/error.hpp"
#include "transport/descriptor.hpp"
#include "transport/owned_fd.hpp"
#include "transport/resolver.hpp"
#include "transport/socket_address.hpp"
#include "transport/socket_stream.hpp"
#include "transport/socket_user.hpp"
#include "transport/spare_descriptor.hpp"

namespace batchrpc::detail {
namespace {

constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(50);
constexpr Duration kLongestShortage = std::chrono::seconds(1);
constexpr int kAcceptsInARow = 64;  // then other handlers on the loop have their turn

bool is_socket(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

[[noreturn]] void fail(const Address& address, int error) {
  std::string message = "cannot listen on " + address.to_string() + ": ";
  switch (error) {
    case EADDRINUSE:
      if (address.scheme() == "unix" && !is_socket(address.name())) {
        message += "a file that is not a socket exists there. Choose another path";
        break;
      }
      message += "the address is taken; another process listens there. Choose another";
      message += address.scheme() == "tcp"
                     ? " port (0, in NodeOptions::listen or for an open group, means any free port)"
                     : " name";
      break;
    case EADDRNOTAVAIL:
      message += "it is not an address of this machine";
      break;
    case EACCES:
      message += "this process may not use it (permission denied)";
      break;
    case ENOENT:
      message += "its folder does not exist";
      break;
    default:
      message += system_error_text({error, std::generic_category()});
      break;
  }
  throw JoinFailed(message);
}

std::string accepted_description(int fd, const Address& own) {
  if (own.scheme() == "tcp") return to_address(peer_address(fd)).to_string();
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return own.to_string();
  return own.to_string() + " (process " + std::to_string(credentials.pid) + ")";
}

/// The part of the listener that remains if the listener is destroyed within its own handler.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(const ListenerParts& parts, int fd, Address address, Transport::AcceptHandler handler)
      : core_(parts.core),
        log_(parts.log),
        limits_(parts.limits),
        descriptor_(std::make_shared<Descriptor>(parts.core->site(), fd)),
        address_(std::move(address)),
        handler_(std::move(handler)) {}

  void start() {
    descriptor_->wait_readable([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->accept();
    });
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    descriptor_->close();
  }

 private:
  // Errno is ECANCELED when it is closed, perhaps by another thread.
  int accept_one() {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      return ::accept4(descriptor_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    errno = ECANCELED;
    return -1;
  }

  void accept() {
    descriptor_->expect_drained();
    for (int i = 0; i < kAcceptsInARow; ++i) {
      const int fd = accept_one();
      if (fd < 0) {
        if (errno == ECANCELED) return;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return pause(errno);
        short_since_.reset();
        return start();
      }
      short_since_.reset();
      const auto core = core_.lock();
      if (!core) {
        ::close(fd);
        return;
      }
      if (!let_in(core, fd)) ::close(fd);
    }
    descriptor_->not_drained();
    start();
  }

  // Returns whether it took the descriptor.
  bool let_in(const std::shared_ptr<LoopCore>& core, int fd) {
    if (address_.scheme() != "tcp") {
      if (const auto stranger = other_user(fd)) {
        refused(accepted_description(fd, address_), stranger->text());
        return false;
      }
    }
    std::shared_ptr<const PeerProof> proof;
    if (address_.scheme() != "tcp") proof = proof_of_user();
    std::shared_ptr<void> place;
    if (limits_) {
      AcceptLimits::Admission admission = limits_->admit(own_address(fd), peer_address(fd));
      if (!admission.place) {
        refused(accepted_description(fd, address_), admission.refusal);
        return false;
      }
      place = std::move(admission.place);
    }
    auto descriptor = std::make_shared<Descriptor>(core->site(), fd);
    handler_(std::make_unique<SocketStream>(core, std::move(descriptor),
                                            accepted_description(fd, address_), std::move(place),
                                            std::move(proof)));
    return true;
  }

  void refused(const std::string& who, const std::string& why) {
    refusals_.write(log_, LogLevel::warning, LoopCore::now(),
                    "refused a connection of " + who + ": " + why);
  }

  // Descriptors or memory are short. Connections wait in the system's queue for a while: they are
  // accepted if the shortage is over by then, and closed otherwise.
  void pause(int error) {
    const auto core = core_.lock();
    if (!core) return;
    const TimePoint now = LoopCore::now();
    if (!short_since_) short_since_ = now;
    shortages_.write(log_, LogLevel::warning, now,
                     "cannot accept connections at " + address_.to_string() + ": " +
                         system_error_text({error, std::generic_category()}) +
                         ". Until then those who connect are turned away");
    if (now - *short_since_ >= kLongestShortage) turn_away();
    core->schedule(now + kPauseWithoutDescriptors, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->accept();
    });
  }

  // Closes the connections that wait, so that they do not wait for nothing.
  void turn_away() {
    for (int i = 0; i < kAcceptsInARow; ++i) {
      spare_.give_up();
      const int fd = accept_one();
      if (fd >= 0) ::close(fd);
      if (!spare_.take_back() || fd < 0) return;
    }
  }

  const std::weak_ptr<LoopCore> core_;
  const Log log_;
  const std::shared_ptr<AcceptLimits> limits_;
  const std::shared_ptr<Descriptor> descriptor_;
  const Address address_;
  const Transport::AcceptHandler handler_;
  LogLimit refusals_{1};
  LogLimit shortages_{1};

  // Only the thread that accepts uses these two.
  std::optional<TimePoint> short_since_;  // descriptors are, without a pause
  SpareDescriptor spare_;

  std::mutex mutex_;  // guards what follows, and the descriptor while it accepts
  bool closed_ = false;
};

class SocketListener final : public Listener {
 public:
  SocketListener(std::shared_ptr<LoopCore> core, std::shared_ptr<Acceptor> acceptor,
                 Address address)
      : core_(std::move(core)), acceptor_(std::move(acceptor)), address_(std::move(address)) {
    if (address_.scheme() == "unix") ::stat(address_.name().c_str(), &file_);
    acceptor_->start();
  }
  ~SocketListener() override {
    if (address_.scheme() == "unix") {
      struct stat found {};
      const char* path = address_.name().c_str();
      const bool ours =
          ::stat(path, &found) == 0 && found.st_ino == file_.st_ino && found.st_dev == file_.st_dev;
      if (ours) ::unlink(path);
    }
    acceptor_->close();
  }
  [[nodiscard]] Address address() const override { return address_; }

 private:
  const std::shared_ptr<LoopCore> core_;
  const std::shared_ptr<Acceptor> acceptor_;
  const Address address_;
  struct stat file_ {};
};

/// Returns whether the socket file at `address` was left by a process that has ended. If so, it is
/// removed.
bool remove_stale_socket(const SocketAddress& address) {
  const auto* path = reinterpret_cast<const sockaddr_un&>(address.storage).sun_path;
  struct stat found {};
  if (::stat(path, &found) != 0) return errno == ENOENT;
  if (!S_ISSOCK(found.st_mode)) return false;
  std::error_code ignored;
  const OwnedFd probe(make_socket(AF_UNIX, ignored));
  if (probe.get() < 0) return false;
  if (::connect(probe.get(), address.get(), address.size) == 0 || errno != ECONNREFUSED)
    return false;
  return ::unlink(path) == 0 || errno == ENOENT;
}

SocketAddress resolve_to_listen(const Address& address) {
  if (address.scheme() != "tcp") return unix_address(address);
  const TcpAddress parts = TcpAddress::of(address);
  SocketAddress result;
  if (numeric_address(parts, result)) return result;
  const FoundAddresses found = find_addresses(parts.host, parts.port, AI_PASSIVE);
  if (found.error) {
    throw JoinFailed("cannot listen on " + address.to_string() + ": the name '" + parts.host +
                     "' is not known here (" + found.error.message() + ")");
  }
  // An IPv4 address if there is one: most of those that connect by name try that too.
  const auto ipv4 =
      std::find_if(found.addresses.begin(), found.addresses.end(),
                   [](const SocketAddress& candidate) { return candidate.family() == AF_INET; });
  return ipv4 != found.addresses.end() ? *ipv4 : found.addresses.front();
}

}  // namespace

std::unique_ptr<Listener> listen_on_socket(const ListenerParts& parts, const Address& address,
                                           Transport::AcceptHandler handler) {
  const SocketAddress target = resolve_to_listen(address);
  std::error_code error;
  OwnedFd fd(make_socket(target.family(), error));
  if (fd.get() < 0) fail(address, error.value());
  if (target.family() == AF_UNIX) {
    // The file that bind() makes takes its mode from the socket: at no time may others connect.
    if (::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0) fail(address, errno);
  } else {
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  int bound = ::bind(fd.get(), target.get(), target.size);
  if (bound != 0 && errno == EADDRINUSE && address.scheme() == "unix") {
    errno = EADDRINUSE;
    if (remove_stale_socket(target))
      bound = ::bind(fd.get(), target.get(), target.size);
    else
      errno = EADDRINUSE;
  }
  if (bound != 0 || ::listen(fd.get(), SOMAXCONN) != 0) fail(address, errno);

  Address own = address;
  if (address.scheme() == "tcp") {
    own = TcpAddress{.host = TcpAddress::of(address).host,
                     .port = TcpAddress::of(to_address(own_address(fd.get()))).port}
              .address();
  }
  auto acceptor = std::make_shared<Acceptor>(parts, fd.release(), own, std::move(handler));
  return std::make_unique<SocketListener>(parts.core, std::move(acceptor), std::move(own));
}

}  // namespace batchrpc::detail
