#include "call_benchmark/node_client.hpp"

#include <atomic>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include "call_benchmark/functions.hpp"

namespace call_benchmark {

namespace {

using Time = Clock::time_point;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// How a case's function is called, and its result.
template <auto F>
struct EchoCall {
  using Result = Payload;
  const Payload payload = Payload(kPayloadBytes);

  [[nodiscard]] batchrpc::Future<Result> operator()(const batchrpc::Node& node) const {
    return node.call<F>(kServer, payload);
  }
  static bool is_right(const Result& result) { return result.size() == kPayloadBytes; }
};

template <auto F>
struct ScaleCall {
  using Result = double;

  [[nodiscard]] batchrpc::Future<Result> operator()(const batchrpc::Node& node) const {
    return node.call<F>(kServer, 2.0, 20, 2);
  }
  static bool is_right(Result result) { return result == 42; }
};

[[noreturn]] void fail_wrong() { throw std::runtime_error("a call's result is wrong"); }

/// Keeps a window of calls: waits for the oldest, and replaces it by a new one.
template <class Call>
class WindowClient final : public Client {
 public:
  WindowClient(const batchrpc::Node& node, int in_flight)
      : node_(node), window_(static_cast<std::size_t>(in_flight)) {}

  Outcome run(const Stretch& stretch, bool timed) override {
    Outcome outcome;
    for (Entry& entry : window_)
      begin(entry, timed ? Clock::now() : Time{});
    while (true) {
      for (Entry& entry : window_) {
        Time now = end(entry, timed, outcome);
        if (stretch.over()) {
          for (Entry* rest = &entry + 1; rest != window_.data() + window_.size(); ++rest)
            end(*rest, timed, outcome);
          for (Entry* rest = window_.data(); rest != &entry; ++rest)
            end(*rest, timed, outcome);
          outcome.late = window_.size();
          return outcome;
        }
        ++outcome.calls;
        begin(entry, now);
      }
    }
  }

 private:
  struct Entry {
    batchrpc::Future<typename Call::Result> future;
    Time sent{};
  };

  void begin(Entry& entry, Time now) {
    entry.sent = now;
    entry.future = call_(node_);
  }

  static Time end(Entry& entry, bool timed, Outcome& outcome) {
    if (!Call::is_right(std::move(entry.future).get())) fail_wrong();
    if (!timed) return {};
    const Time now = Clock::now();
    outcome.rtt_us.push_back(microseconds(now - entry.sent));
    return now;
  }

  const batchrpc::Node& node_;
  const Call call_{};
  std::vector<Entry> window_;
};

/// Keeps chains of calls: the callback of a result makes the next call, on the thread that drives
/// the node.
template <class Call>
class ChainClient final : public Client {
 public:
  ChainClient(const std::vector<const batchrpc::Node*>& nodes, int in_flight) {
    for (const batchrpc::Node* node : nodes) {
      for (int i = 0; i < in_flight; ++i)
        chains_.push_back({.node = node, .sent = {}, .outcome = {}});
    }
  }

  Outcome run(const Stretch& stretch, bool timed) override {
    stretch_ = &stretch;
    timed_ = timed;
    left_ = chains_.size();
    failed_ = false;
    batchrpc::Promise<void> ended;
    auto end = ended.get_future();
    ended_ = std::move(ended);
    for (Chain& chain : chains_) {
      chain.outcome = {};
      call(chain, timed ? Clock::now() : Time{});
    }
    std::move(end).get();
    Outcome all;
    for (Chain& chain : chains_) {
      all.calls += chain.outcome.calls;
      all.late += chain.outcome.late;
      all.rtt_us.insert(all.rtt_us.end(), chain.outcome.rtt_us.begin(), chain.outcome.rtt_us.end());
    }
    return all;
  }

 private:
  struct Chain {
    const batchrpc::Node* node;
    Time sent;
    Outcome outcome;
  };
  using Result = batchrpc::Result<typename Call::Result>;

  void call(Chain& chain, Time now) {
    chain.sent = now;
    call_(*chain.node).then([this, &chain](Result result) { go_on(chain, std::move(result)); });
  }

  void go_on(Chain& chain, Result result) {
    Time now{};
    if (timed_) {
      now = Clock::now();
      chain.outcome.rtt_us.push_back(microseconds(now - chain.sent));
    }
    if (!result) {
      fail(result.error());
    } else if (!Call::is_right(result.value())) {
      fail(std::make_exception_ptr(std::runtime_error("a call's result is wrong")));
    }
    if (stretch_->over() || failed_.load(std::memory_order_relaxed)) {
      ++chain.outcome.late;
      if (left_.fetch_sub(1) == 1) finish();
      return;
    }
    ++chain.outcome.calls;
    call(chain, now);
  }

  void fail(const std::exception_ptr& error) {
    if (!failed_.exchange(true)) error_ = error;
  }

  void finish() {
    batchrpc::Promise<void> ended = std::move(ended_);
    if (failed_) {
      ended.set_error(error_);
    } else {
      ended.set_value();
    }
  }

  const Call call_{};
  std::vector<Chain> chains_;
  const Stretch* stretch_ = nullptr;
  bool timed_ = false;
  std::atomic<std::size_t> left_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  batchrpc::Promise<void> ended_;
};

template <class Call>
std::unique_ptr<Client> make(const std::vector<const batchrpc::Node*>& nodes, int in_flight,
                             Style style) {
  if (style == Style::then) return std::make_unique<ChainClient<Call>>(nodes, in_flight);
  if (nodes.size() != 1) throw std::invalid_argument("a blocking client has one node");
  return std::make_unique<WindowClient<Call>>(*nodes.front(), in_flight);
}

}  // namespace

std::unique_ptr<Client> make_node_client(std::vector<const batchrpc::Node*> nodes, int in_flight,
                                         Case which, Handlers handlers, Style style) {
  const bool brief = handlers == Handlers::short_ones;
  if (which == Case::payload64) {
    return brief ? make<EchoCall<&echo_short>>(nodes, in_flight, style)
                 : make<EchoCall<&echo_on_workers>>(nodes, in_flight, style);
  }
  return brief ? make<ScaleCall<&scale_short>>(nodes, in_flight, style)
               : make<ScaleCall<&scale_on_workers>>(nodes, in_flight, style);
}

}  // namespace call_benchmark
