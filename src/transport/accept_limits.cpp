#include "transport/accept_limits.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/system_error_text.hpp"

namespace batchrpc::detail {

class AcceptLimits::Place {
 public:
  Place(std::shared_ptr<AcceptLimits> limits, const Machine& machine, bool is_counted_alone)
      : limits_(std::move(limits)), machine_(machine), is_counted_alone_(is_counted_alone) {}
  ~Place() { limits_->leave(machine_, is_counted_alone_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  const std::shared_ptr<AcceptLimits> limits_;
  const Machine machine_;
  const bool is_counted_alone_;
};

AcceptLimits::Admission AcceptLimits::admit(const SocketAddress& own, const SocketAddress& peer) {
  const std::size_t descriptors = most_descriptors();
  const std::size_t most = descriptors / 4 * 3;
  const bool is_here = is_loopback(peer) || has_one_address(own, peer);
  const Machine machine = machine_of(peer);
  const auto refuse = [&](std::size_t count, std::size_t limit, const char* of) {
    return Admission{
        .place = nullptr,
        .refusal = "there are " + std::to_string(count) + " connections" + of + ", and at most " +
                   std::to_string(limit) + " of the " + std::to_string(descriptors) +
                   " descriptors of this process are for them. If these peers are yours, raise "
                   "the limit (ulimit -n); if not, keep strangers from this port (a firewall)"};
  };
  {
    const std::lock_guard lock(mutex_);
    if (all_ >= most) return refuse(all_, most, "");
    if (!is_here) {
      std::size_t& count = by_machine_[machine];
      if (count >= most / 2) return refuse(count, most / 2, " from this address");
      ++count;
    }
    ++all_;
  }
  return {.place = std::make_shared<Place>(shared_from_this(), machine, !is_here), .refusal = {}};
}

void AcceptLimits::leave(const Machine& machine, bool is_counted_alone) {
  const std::lock_guard lock(mutex_);
  --all_;
  if (!is_counted_alone) return;
  const auto found = by_machine_.find(machine);
  if (--found->second == 0) by_machine_.erase(found);
}

AcceptLimits::Machine AcceptLimits::machine_of(const SocketAddress& address) noexcept {
  Machine machine{};
  if (address.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    std::memcpy(machine.data() + 12, &v4.sin_addr, sizeof v4.sin_addr);
  } else if (address.family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    std::memcpy(machine.data(), &v6.sin6_addr, machine.size());
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      std::fill(machine.begin(), machine.begin() + 12, std::byte{});
    }
  }
  return machine;
}

}  // namespace batchrpc::detail
