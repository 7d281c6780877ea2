#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace batchrpc::detail {

/// Where the events of an InprocNetwork are told. Thread-safe.
class InprocTrace {
 public:
  using Sink = std::function<void(std::string_view event)>;

  void set_sink(Sink sink) {
    auto shared = sink ? std::make_shared<const Sink>(std::move(sink)) : nullptr;
    const std::lock_guard lock(mutex_);
    on_.store(shared != nullptr, std::memory_order_relaxed);
    sink_.swap(shared);
  }

  [[nodiscard]] bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

  /// Not under a lock: the sink is the user's.
  void notify(std::string_view event) const {
    std::shared_ptr<const Sink> sink;
    {
      const std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink) (*sink)(event);
  }

 private:
  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<const Sink> sink_;
};

/// Events of a scope, told at its end: made before a lock is taken, it tells them after that.
class TraceEvents {
 public:
  explicit TraceEvents(const InprocTrace& trace) : trace_(trace), on_(trace.on()) {}
  ~TraceEvents() {
    for (const std::string& event : events_)
      trace_.notify(event);
  }
  TraceEvents(const TraceEvents&) = delete;
  TraceEvents& operator=(const TraceEvents&) = delete;

  [[nodiscard]] bool on() const noexcept { return on_; }
  /// The text of each part, one after the other.
  template <class... Parts>
  void add(const Parts&... parts) {
    if (!on_) return;
    std::string& event = events_.emplace_back();
    (append(event, parts), ...);
  }

 private:
  template <class Part>
  static void append(std::string& event, const Part& part) {
    if constexpr (std::is_arithmetic_v<Part>) {
      event += std::to_string(part);
    } else {
      event += part;
    }
  }

  const InprocTrace& trace_;
  const bool on_;
  std::vector<std::string> events_;
};

}  // namespace batchrpc::detail
