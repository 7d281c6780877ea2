#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/node/node.hpp"
#include "batchrpc/testing.hpp"

namespace batchrpc::test {

/// The lines that nodes log.
class LogLines {
 public:
  [[nodiscard]] LogSink sink() const {
    return [lines = lines_](LogLevel /*level*/, std::string_view line) {
      const std::lock_guard lock(lines->mutex);
      lines->all.emplace_back(line);
    };
  }
  [[nodiscard]] bool contain(std::string_view text) const {
    const std::lock_guard lock(lines_->mutex);
    for (const std::string& line : lines_->all) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::vector<std::string> all;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
};

/// Nodes in virtual time, on the test's own thread. Each is a host of the network, by its name; the
/// first one made is the root of an open group.
class VirtualWorld {
 public:
  explicit VirtualWorld(std::uint64_t seed = 1)
      : loop(std::make_shared<VirtualLoop>(seed)), network(InprocNetwork::make(seed)) {}

  [[nodiscard]] NodeOptions options(std::string name) const {
    NodeOptions options;
    options.name = std::move(name);
    options.rank = 0;
    options.join = "inproc://world";
    options.simulation.loop = loop;
    options.transports = {inproc_transport(network)};
    options.logging.level = LogLevel::debug;
    options.logging.sink = log.sink();
    options.expose_within = Duration::zero();
    options.simulation.seed = ++seeds_;
    return options;
  }
  /// Options of a node that joins the root.
  [[nodiscard]] NodeOptions joining(std::string name) const {
    NodeOptions joining = options(std::move(name));
    joining.rank = -1;
    return joining;
  }
  [[nodiscard]] Node root(std::string name = "root") const {
    return Node(options(std::move(name)));
  }
  [[nodiscard]] Node join(std::string name) const { return Node(joining(std::move(name))); }

  /// As if the node's process were killed: its connections end and its address refuses. The object
  /// lives on, cut off.
  void kill(const std::string& name) const {
    network->kill(name);
    network->isolate(name);
  }

  /// Time since the start.
  [[nodiscard]] Duration time() const { return loop->now() - start_; }
  void run_for(Duration duration) const { loop->run_for(duration); }

  std::shared_ptr<VirtualLoop> loop;
  std::shared_ptr<InprocNetwork> network;
  LogLines log;

 private:
  TimePoint start_ = loop->now();
  mutable std::uint64_t seeds_ = 0;
};

/// What `future` failed with: its code. Waits for it.
template <class T>
Result<T> outcome(Future<T> future) {
  try {
    if constexpr (std::is_void_v<T>) {
      std::move(future).get();
      return {};
    } else {
      return std::move(future).get();
    }
  } catch (...) {
    return std::current_exception();
  }
}

/// The text of its error.
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "no error" : describe(result.error());
}

/// Whether the call that ended in `error` may have run.
inline bool may_have_run(const std::exception_ptr& error) {
  if (!error) throw std::logic_error("there was no error");
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.may_have_run();
  }
}

/// Two nodes of one group.
struct NodePair {
  VirtualWorld world;
  Node a = world.root("a");
  Node b = world.join("b");
};

/// Of the peers that the node knows.
[[nodiscard]] inline std::vector<std::string> names_of(const Node& node) {
  std::vector<std::string> names;
  for (const PeerInfo& peer : node.peers())
    names.push_back(peer.name);
  return names;
}

}  // namespace batchrpc::test
