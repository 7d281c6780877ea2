// Unix sockets connect only processes of one user.
#include "transport/socket_user.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fabrics.hpp"
#include "transport/owned_fd.hpp"
#include "transport/socket_address.hpp"

namespace batchrpc::test {
namespace socket_user_test {

constexpr uid_t kNobody = 65534;

bool may_change_user() {
  if (::geteuid() == 0) return true;
  WARN("left out: only root can start a process of another user");
  return false;
}

/// A child process of another user. It calls only the system, because this process has threads.
class Stranger {
 public:
  /// Runs `act` in the child, whose result is its exit code.
  template <class Act>
  explicit Stranger(const Act& act) : pid_(::fork()) {
    if (pid_ != 0) return;
    if (::syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0) ::_exit(100);
    ::_exit(act());
  }
  ~Stranger() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  int exit_code() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

constexpr int kLetIn = 1;
constexpr int kClosed = 2;
constexpr int kNoPermission = 3;
constexpr int kOther = 4;

/// Connects, and waits to be closed.
int knock(const detail::SocketAddress& at) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (::connect(fd, at.get(), at.size) != 0) return errno == EACCES ? kNoPermission : kOther;
  pollfd closed{.fd = fd, .events = POLLIN, .revents = 0};
  constexpr int kMilliseconds = 10'000;
  if (::poll(&closed, 1, kMilliseconds) == 0) return kLetIn;
  char byte = 0;
  return ::read(fd, &byte, 1) == 0 ? kClosed : kOther;
}

/// What a transport logs.
class Lines {
 public:
  Log log() {
    return Log(LogLevel::warning, [lines = lines_](LogLevel, std::string_view line) {
      const std::lock_guard lock(lines->mutex);
      lines->texts.emplace_back(line);
    });
  }
  std::vector<std::string> texts() const {
    const std::lock_guard lock(lines_->mutex);
    return lines_->texts;
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::vector<std::string> texts;
  };
  const std::shared_ptr<Kept> lines_ = std::make_shared<Kept>();
};

Fabric fabric_with(Lines& lines, const std::string& scheme) {
  Fabric fabric = socket_fabric(scheme);
  fabric.server = std::make_shared<UnixTransport>(
      std::dynamic_pointer_cast<SocketLoop>(fabric.server_loop), 0, lines.log());
  fabric.client = std::make_shared<UnixTransport>(
      std::dynamic_pointer_cast<SocketLoop>(fabric.client_loop), 0, lines.log());
  return fabric;
}

TEST_CASE("A process of another user that connects to a Unix socket is closed, with a warning",
          "[threads]") {
  if (!may_change_user()) return;
  for (const std::string scheme : {"unix-abstract", "unix"}) {
    Lines lines;
    const Fabric fabric = fabric_with(lines, scheme);
    Accepting accepting(fabric);
    if (scheme == "unix") ::chmod(accepting.address().name().c_str(), 0777);
    const detail::SocketAddress at = detail::unix_address(accepting.address());
    for (int i = 0; i < 3; ++i) {
      Stranger stranger([&] { return knock(at); });
      CHECK(stranger.exit_code() == kClosed);
    }
    const Pair pair = accepting.connect();
    CHECK_THAT(pair.server->description(), Catch::Contains(std::to_string(::getpid())));
    REQUIRE(lines.texts().size() == 1);  // not one for each
    CHECK_THAT(lines.texts()[0], Catch::Contains("the id 65534, and this one as 0") &&
                                     Catch::Contains("run both as the same, or use tcp://"));
  }
}

TEST_CASE("A connect to a Unix socket of another user fails, and says so", "[threads]") {
  if (!may_change_user()) return;
  Lines lines;
  const Fabric fabric = fabric_with(lines, "unix-abstract");
  const Address address = fabric.address();
  const detail::SocketAddress at = detail::unix_address(address);
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const detail::OwnedFd listens(ready[0]);
  {
    const detail::OwnedFd listening(ready[1]);
    const Stranger stranger([&] {
      const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
      if (::bind(fd, at.get(), at.size) != 0 || ::listen(fd, 10) != 0) return kOther;
      if (::write(ready[1], "x", 1) != 1) return kOther;
      return ::pause();
    });
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    for (int i = 0; i < 3; ++i) {
      const auto [stream, error] = connect(fabric, address);
      CHECK(stream == nullptr);
      CHECK(error == std::errc::permission_denied);
      CHECK_THAT(error.message(), Catch::Contains("the user with the id 65534"));
    }
  }
  REQUIRE(lines.texts().size() == 1);
  CHECK_THAT(lines.texts()[0], Catch::Contains(address.to_string()) && Catch::Contains("65534"));
}

TEST_CASE("Nobody else may open a Unix socket's file, whatever the umask is", "[threads]") {
  const Fabric fabric = socket_fabric("unix");
  const mode_t before = ::umask(0);
  const Accepting accepting(fabric);
  ::umask(before);
  struct stat found {};
  REQUIRE(::stat(accepting.address().name().c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
  if (!may_change_user()) return;
  const detail::SocketAddress at = detail::unix_address(accepting.address());
  Stranger stranger([&] { return knock(at); });
  CHECK(stranger.exit_code() == kNoPermission);
}

TEST_CASE("Any user's id gives an error") {
  for (const uid_t uid : {0U, 1U, 65534U, 4294967294U}) {
    const std::error_code error = detail::OtherUser{uid}.error();
    CHECK(error);
    CHECK_THAT(error.message(), Catch::Contains("the id " + std::to_string(uid) + ","));
  }
}

}  // namespace socket_user_test
}  // namespace batchrpc::test
