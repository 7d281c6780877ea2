#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "soak/link.hpp"
#include "soak/options.hpp"
#include "soak/window.hpp"

namespace soak {

/// Identifies a call; no two calls have the same id.
struct CallId {
  std::uint32_t caller = 0;  ///< an observer's index, kObservers for the agent
  std::uint32_t life = 0;    ///< of the caller
  std::uint64_t number = 0;  ///< from 1 on
};

struct EchoRequest {
  std::uint64_t at = 0;    ///< position of the bytes in the pattern
  std::uint64_t size = 0;  ///< number of bytes
  std::uint64_t reply_at = 0;
  std::uint64_t reply_size = 0;
};

using Row = std::vector<float>;

/// An object behind remote references.
class Tally {
 public:
  explicit Tally(int start) : value_(start) { ++alive; }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() { --alive; }
  int add(int n) { return value_ += n; }

  inline static std::atomic<int> alive{0};

 private:
  int value_;
};

/// The functions that a node of the soak exposes. They detect calls that run twice, or with wrong
/// arguments.
class Callee {
 public:
  /// `folder` keeps the window of the agent's calls, which must not run in two lives of an
  /// observer.
  Callee(const batchrpc::Node& node, const Options& options, Report& report);
  ~Callee();
  Callee(const Callee&) = delete;
  Callee& operator=(const Callee&) = delete;

  /// Answers the lingering calls whose time has come.
  void tick();

 private:
  struct LifeWindow {
    std::uint32_t life = 0;
    RanWindow ran{};
  };
  struct Lingering {
    std::chrono::steady_clock::time_point until;
    batchrpc::Promise<std::uint64_t> promise;
    std::uint64_t number;
  };

  void expose_calls();
  void expose_batcher();
  void expose_objects();
  void ran(const CallId& id, const char* function);

  const batchrpc::Node& node_;
  const bool is_agent_;
  Report& report_;
  std::mutex mutex_;
  // The latest lives of each observer; these call the agent.
  std::vector<std::array<LifeWindow, 3>> observers_{};
  RanWindow* agent_ = nullptr;  // in a file
  std::deque<Lingering> lingering_;
};

}  // namespace soak
