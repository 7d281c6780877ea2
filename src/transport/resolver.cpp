#include "transport/resolver.hpp"

#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "transport/signals_blocked.hpp"

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

}  // namespace

FoundAddresses find_addresses(const std::string& name, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &first);
  FoundAddresses found;
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

struct Resolver::Wanted {
  std::weak_ptr<void> asker;
  std::string name;
  std::uint16_t port = 0;
  Handler handler;
};

struct Resolver::State {
  explicit State(Find how) : find(std::move(how)) {}

  const Find find;

  std::mutex mutex;  // guards the next two
  std::deque<Wanted> wanted;
  int threads = 0;  // each is finding, or about to look for what is wanted

  std::mutex handling;  // held while a handler is called; guards what follows
  bool stopped = false;
};

Resolver::Resolver()
    : Resolver([](const std::string& name, std::uint16_t port) {
        return find_addresses(name, port, AI_ADDRCONFIG);
      }) {}

Resolver::Resolver(Find find) : state_(std::make_shared<State>(std::move(find))) {}

void Resolver::resolve(std::weak_ptr<void> asker, std::string name, std::uint16_t port,
                       Handler handler) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->threads < kMostThreads && start_thread()) ++state_->threads;
    if (state_->threads > 0) {
      state_->wanted.push_back({std::move(asker), std::move(name), port, std::move(handler)});
      return;
    }
  }
  handler(
      {.addresses = {}, .error = std::make_error_code(std::errc::resource_unavailable_try_again)});
}

// The new thread waits for the mutex that the caller holds.
bool Resolver::start_thread() {
  const SignalsBlocked blocked;
  try {
    std::thread([state = state_] { work(state); }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void Resolver::work(const std::shared_ptr<State>& state) {
  while (true) {
    Wanted next;
    {
      const std::lock_guard lock(state->mutex);
      if (state->wanted.empty()) {
        --state->threads;
        return;
      }
      next = std::move(state->wanted.front());
      state->wanted.pop_front();
    }
    if (next.asker.expired()) continue;
    FoundAddresses found = state->find(next.name, next.port);
    const std::lock_guard lock(state->handling);
    if (!state->stopped && !next.asker.expired()) next.handler(std::move(found));
  }
}

void Resolver::stop() {
  std::deque<Wanted> wanted;  // destroyed after the locks
  {
    const std::lock_guard lock(state_->mutex);
    wanted.swap(state_->wanted);
  }
  const std::lock_guard lock(state_->handling);
  state_->stopped = true;
}

}  // namespace batchrpc::detail
