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
  std::string name;
  Transport::AcceptHandler handler;
  std::atomic<bool> closed{false};
};

/// A connect that is under way.
struct InprocConnecting {
  std::weak_ptr<Loop> loop;
  std::string host;
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
  void set_cut(std::string_view a, std::string_view b, bool cut);
  void set_isolated(std::string_view host, bool isolated);
  void cut(std::string_view a, std::string_view b);
  void kill(std::string_view host);
  [[nodiscard]] std::size_t connections() const;

 private:
  using Link = std::pair<std::string, std::string>;

  /// Ends a connect: its handler, unless it is over.
  Transport::ConnectHandler finish(const std::shared_ptr<InprocConnecting>& connecting);

  // With mutex_ held:
  [[nodiscard]] bool is_cut(const std::string& a, const std::string& b) const;
  [[nodiscard]] LinkOptions options(const std::string& a, const std::string& b) const;
  void try_to_connect(const std::shared_ptr<InprocConnecting>& connecting);
  void apply_cuts();
  void forget_dead_connections();

  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  LinkOptions all_links_;
  std::map<Link, LinkOptions> links_;
  std::set<Link> cuts_;
  std::set<std::string> isolated_;
  std::map<std::string, std::shared_ptr<InprocListening>> listening_;
  std::vector<std::shared_ptr<InprocConnecting>> connecting_;
  std::vector<std::weak_ptr<InprocConnection>> connections_;
  std::size_t forget_at_ = 64;
};

}  // namespace batchrpc::detail
