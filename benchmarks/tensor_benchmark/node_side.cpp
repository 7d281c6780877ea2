#include "tensor_benchmark/node_side.hpp"

#include <ATen/ATen.h>

#include <batchrpc/torch.hpp>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/node_pair.hpp"

namespace tensor_benchmark {

// Both processes know it by its name.
at::Tensor echo(at::Tensor tensor);
at::Tensor echo(at::Tensor tensor) { return tensor; }

namespace {

using batchrpc_benchmarks::kServer;

constexpr const char* kPush = "tensor_benchmark::push";
constexpr const char* kLatest = "tensor_benchmark::latest";

/// Keeps the last pushed tensor.
class Latest {
 public:
  void set(at::Tensor tensor) {
    const std::lock_guard lock(mutex_);
    std::swap(tensor_, tensor);  // the previous tensor is freed after the unlock
  }
  at::Tensor get() {
    const std::lock_guard lock(mutex_);
    return tensor_;
  }

 private:
  std::mutex mutex_;
  at::Tensor tensor_;
};

/// Raises the limits, so that a window of the largest tensors is limited only by the window.
batchrpc::NodeOptions with_room(batchrpc::NodeOptions options) {
  options.limits.max_outstanding_bytes = std::uint64_t{128} << 30;
  return options;
}

class NodeClient final : public Client {
 public:
  NodeClient(const batchrpc::Node& node, const Case& which, Receive receive,
             const at::Tensor& tensor, Check check)
      : node_(node),
        mode_(which.mode),
        receive_(receive),
        tensor_(tensor),
        check_(std::move(check)),
        window_(static_cast<std::size_t>(which.window)) {
    if (receive_ == Receive::into) {
      for (Entry& entry : window_)
        entry.tensor = at::zeros(tensor.sizes(), tensor.options());
    }
    verify();
  }

  Outcome run(double seconds) override {
    const RunTime time(seconds);
    Outcome outcome;
    for (Entry& entry : window_)
      begin(entry, Clock::now());
    std::size_t under_way = window_.size();
    for (std::size_t number = 0; under_way > 0; ++number) {
      Entry& entry = window_[number % window_.size()];
      end(entry);
      const Clock::time_point now = Clock::now();
      outcome.us.push_back(microseconds(now - entry.begin));
      if (time.is_over(now)) {
        --under_way;
      } else {
        begin(entry, now);
      }
      check_();
    }
    outcome.seconds = time.passed();
    return outcome;
  }

 private:
  struct Entry {
    batchrpc::Future<at::Tensor> fresh;
    batchrpc::Future<void> done;
    at::Tensor tensor;  // for call_into
    Clock::time_point begin;
  };

  void begin(Entry& entry, Clock::time_point now) const {
    entry.begin = now;
    if (mode_ == Mode::push) {
      entry.done = node_.call<void(at::Tensor)>(kServer, kPush, tensor_);
    } else if (receive_ == Receive::into) {
      entry.done = batchrpc::call_into<&echo>(node_.peer(kServer), entry.tensor, tensor_);
    } else {
      entry.fresh = node_.call<&echo>(kServer, tensor_);
    }
  }

  at::Tensor end(Entry& entry) const {
    if (mode_ == Mode::echo && receive_ == Receive::fresh) return std::move(entry.fresh).get();
    std::move(entry.done).get();
    return entry.tensor;
  }

  void verify() {
    begin(window_.front(), Clock::now());
    at::Tensor received = end(window_.front());
    if (mode_ == Mode::push) received = node_.call<at::Tensor()>(kServer, kLatest).get();
    if (!at::equal(received, tensor_)) {
      throw std::runtime_error("a tensor did not arrive as it was sent");
    }
  }

  const batchrpc::Node& node_;
  const Mode mode_;
  const Receive receive_;
  const at::Tensor tensor_;
  const Check check_;
  std::vector<Entry> window_;
};

}  // namespace

batchrpc::Node start_server(Transport transport, Handlers handlers,
                            std::shared_ptr<batchrpc::InprocNetwork> network) {
  batchrpc::Node node(
      with_room(batchrpc_benchmarks::server_options(transport, std::move(network))));
  const batchrpc::ExposeOptions how{.short_handler = handlers == Handlers::short_ones};
  const auto latest = std::make_shared<Latest>();
  node.expose<&echo>(how);
  node.expose(
      kPush, [latest](at::Tensor tensor) { latest->set(std::move(tensor)); }, how);
  node.expose(kLatest, [latest] { return latest->get(); });
  return node;
}

batchrpc::Node start_client(Transport transport, const std::string& address,
                            std::shared_ptr<batchrpc::InprocNetwork> network) {
  return batchrpc_benchmarks::start_client(with_room(
      batchrpc_benchmarks::client_options(transport, address, "client", std::move(network))));
}

std::unique_ptr<Client> make_node_client(const batchrpc::Node& node, const Case& which,
                                         Receive receive, const at::Tensor& tensor, Check check) {
  return std::make_unique<NodeClient>(node, which, receive, tensor, std::move(check));
}

}  // namespace tensor_benchmark
