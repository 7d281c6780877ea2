#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/transport/inproc.hpp"
#include "transport/inproc_connection.hpp"

namespace batchrpc::detail {

/// Who listens where in an InprocNetwork.
struct InprocListening {
  std::weak_ptr<Loop> loop;
  std::string host;
  std::uint64_t start = 0;  // see starts()
  std::string name;
  Transport::AcceptHandler handler;
  std::atomic<bool> closed{false};
};

/// A connect that is under way.
struct InprocConnecting {
  std::weak_ptr<Loop> loop;
  std::string host;
  std::uint64_t start = 0;
  std::string name;
  const void* transport;
  Transport::ConnectHandler handler;  // empty once it is over
  TimerId deadline = 0;
  bool answered = false;
};

/// What an InprocNetwork's transports share: names, links and their faults. Thread-safe. Handlers
/// run as tasks of their loops, never under the lock.
class InprocSwitchboard : public std::enable_shared_from_this<InprocSwitchboard> {
 public:
  explicit InprocSwitchboard(std::uint64_t seed) : random_(seed) {}

  /// False when the name is taken.
  [[nodiscard]] bool listen(const std::shared_ptr<InprocListening>& listening);
  void unlisten(const std::shared_ptr<InprocListening>& listening);

  void connect(const std::shared_ptr<InprocConnecting>& connecting, TimePoint deadline);
  /// Destroys the handlers of a transport's connects.
  void give_up(const void* transport);

  void set_link(const LinkOptions& options);
  void set_link(std::string_view a, std::string_view b, const LinkOptions& options);
  void partition(std::string_view a, std::string_view b);
  void partition_one_way(std::string_view from, std::string_view to);
  void heal(std::string_view a, std::string_view b);
  void set_isolated(std::string_view host, bool isolated);
  void cut(std::string_view a, std::string_view b);
  void kill(std::string_view host);
  void power_off(std::string_view host);
  /// How often the host was powered off: who was made before the last time is off.
  [[nodiscard]] std::uint64_t starts(const std::string& host) const;
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] InprocTrace& trace() noexcept { return *trace_; }

 private:
  using Link = std::pair<std::string, std::string>;

  /// Ends a connect: its handler, unless it is over.
  Transport::ConnectHandler finish(const std::shared_ptr<InprocConnecting>& connecting);

  // With mutex_ held:
  [[nodiscard]] bool is_cut(const std::string& from, const std::string& to) const;
  [[nodiscard]] bool is_off(const std::string& host, std::uint64_t start) const;
  [[nodiscard]] LinkOptions options(const std::string& a, const std::string& b) const;
  void try_to_connect(const std::shared_ptr<InprocConnecting>& connecting, TraceEvents& events);
  void try_to_connect_again(TraceEvents& events);
  void apply_cuts(TraceEvents& events);
  void forget_dead_connections();

  const std::shared_ptr<InprocTrace> trace_ = std::make_shared<InprocTrace>();
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  LinkOptions all_links_;
  std::map<Link, LinkOptions> links_;
  std::set<Link> cuts_;  // from, to
  std::set<std::string> isolated_;
  std::map<std::string, std::uint64_t> starts_;
  std::map<std::string, std::shared_ptr<InprocListening>> listening_;
  std::set<std::string> dark_;  // names that a host without power listened at
  std::vector<std::shared_ptr<InprocConnecting>> connecting_;
  std::vector<std::weak_ptr<InprocConnection>> connections_;
  std::size_t forget_at_ = 64;
  std::uint64_t connected_ = 0;  // how many were, ever
};

}  // namespace batchrpc::detail
