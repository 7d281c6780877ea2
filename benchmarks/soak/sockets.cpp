#include "soak/sockets.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

namespace soak {

namespace {

std::vector<int> list_files() {
  std::vector<int> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string name = entry.path().filename();
    int file = -1;
    std::from_chars(name.data(), name.data() + name.size(), file);
    files.push_back(file);
  }
  return files;
}

bool is_connection(int file) {
  int accepts = 0;
  socklen_t size = sizeof accepts;
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof peer;
  return ::getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 && accepts == 0 &&
         ::getpeername(file, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
         peer.ss_family == AF_INET;
}

}  // namespace

OpenFiles open_files() {
  OpenFiles open{.others = -1};  // the listing opens one itself
  for (const int file : list_files())
    ++(is_connection(file) ? open.connections : open.others);
  return open;
}

bool cut_connection(std::uint64_t number, bool reset) {
  std::vector<int> connections;
  for (const int file : list_files()) {
    if (is_connection(file)) connections.push_back(file);
  }
  if (connections.empty()) return false;
  const int file = connections[static_cast<std::size_t>(number % connections.size())];
  if (!reset) return ::shutdown(file, SHUT_RDWR) == 0;
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;  // dissolves the connection
  // A system call, as if another program did it, so that the thread sanitizer does not report a
  // race.
  return ::syscall(SYS_connect, file, &nowhere, sizeof nowhere) == 0;
}

}  // namespace soak
