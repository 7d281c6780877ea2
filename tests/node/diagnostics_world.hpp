#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc::test {

/// Lines of info and above, each with its level: "info: b: connected again to a".
class ReportedLines {
 public:
  [[nodiscard]] LogSink sink() const {
    return [lines = lines_](LogLevel level, std::string_view line) {
      const std::lock_guard lock(lines->mutex);
      if (level == LogLevel::debug) return;
      lines->all.push_back((level == LogLevel::info ? "info: " : "warning: ") + std::string(line));
    };
  }
  /// Those since the last time.
  [[nodiscard]] std::vector<std::string> take() const {
    const std::lock_guard lock(lines_->mutex);
    return std::exchange(lines_->all, {});
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::vector<std::string> all;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
};

/// A root, and two nodes of which `a` calls `b` and keeps what it logs.
struct DiagnosticsWorld {
  VirtualWorld world;
  ReportedLines reported;
  Node root = world.root();
  Node a;
  Node b;
  std::vector<Promise<int>> never;

  explicit DiagnosticsWorld(const LinkOptions& link = {},
                            Duration b_dead_after = std::chrono::seconds(5))
      : a(make_a()), b(make_b(b_dead_after)) {
    world.network->set_link("a", "b", link);
    expose(b);
  }
  void expose(const Node& node) {
    node.expose("twice", [](int x) { return 2 * x; });
    node.expose("length", [](const std::string& text) { return text.size(); });
    node.expose("never", [this] {
      never.emplace_back();
      return never.back().get_future();
    });
  }
  void run_for(Duration duration) const { world.run_for(duration); }
  [[nodiscard]] TimePoint now() const { return world.loop->now(); }
  [[nodiscard]] PeerInfo peer(const Node& node, std::string_view name) const {
    for (const PeerInfo& info : node.peers()) {
      if (info.name == name) return info;
    }
    throw std::logic_error("no such peer");
  }

 private:
  [[nodiscard]] Node make_a() const {
    NodeOptions options = world.joining("a");
    options.logging.sink = reported.sink();
    return Node(options);
  }
  [[nodiscard]] Node make_b(Duration dead_after) const {
    NodeOptions options = world.joining("b");
    options.liveness.dead_after = dead_after;
    options.liveness.ping_after = dead_after / 5;
    return Node(options);
  }
};

/// A call that has failed, with its diagnostics.
struct Failure {
  std::exception_ptr error;
  CallDiagnostics diagnostics;
  std::string text;  // explain()

  template <class T>
  explicit Failure(Future<T> future) : Failure(outcome(std::move(future))) {}
  template <class T>
  explicit Failure(const Result<T>& result) : error(result.error()), text(explain(result)) {
    try {
      (void)result.value();
    } catch (const Error& known) {
      const Error copy = known;
      if (copy.diagnostics() != nullptr) diagnostics = *copy.diagnostics();
    }
  }
  [[nodiscard]] ErrorCode code() const { return code_of(error); }
  [[nodiscard]] Duration took() const { return diagnostics.ended_at - diagnostics.called_at; }
  /// When the first event of this kind was, since the call.
  [[nodiscard]] std::optional<Duration> time_of(ConnectionEvent::Kind kind) const {
    if (!diagnostics.events) return std::nullopt;
    for (const ConnectionEvent& event : *diagnostics.events) {
      if (event.kind == kind && event.at >= diagnostics.called_at)
        return event.at - diagnostics.called_at;
    }
    return std::nullopt;
  }
};

}  // namespace batchrpc::test
