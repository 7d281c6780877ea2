#include "transport/resolver.hpp"

#include <netdb.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace batchrpc::detail {
namespace {

class ResolverCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "getaddrinfo"; }
  [[nodiscard]] std::string message(int error) const override { return ::gai_strerror(error); }
};

std::error_code resolver_error(int error) noexcept {
  static const ResolverCategory category;
  if (error == EAI_SYSTEM) return {errno, std::generic_category()};
  return {error, category};
}

Resolver::Found find(const std::string& name, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &first);
  Resolver::Found found;
  if (error != 0) {
    found.error = resolver_error(error);
    return found;
  }
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    SocketAddress& address = found.addresses.emplace_back();
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
  }
  ::freeaddrinfo(first);
  return found;
}

}  // namespace

struct Resolver::Wanted {
  std::string name;
  std::uint16_t port = 0;
  Handler handler;
};

struct Resolver::State {
  std::mutex mutex;  // guards what follows
  std::deque<Wanted> wanted;
  bool works = false;  // a thread does
};

Resolver::Resolver() : state_(std::make_shared<State>()) {}

void Resolver::resolve(std::string name, std::uint16_t port, Handler handler) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted.push_back({std::move(name), port, std::move(handler)});
  if (std::exchange(state_->works, true)) return;
  // Signals belong to the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_] { work(state); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Resolver::work(const std::shared_ptr<State>& state) {
  while (true) {
    Wanted next;
    {
      const std::lock_guard lock(state->mutex);
      if (state->wanted.empty()) {
        state->works = false;
        return;
      }
      next = std::move(state->wanted.front());
      state->wanted.pop_front();
    }
    next.handler(find(next.name, next.port));
  }
}

}  // namespace batchrpc::detail
