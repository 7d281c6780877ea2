#include "call_benchmark/rounds.hpp"

#include <algorithm>
#include <batchrpc/profile.hpp>
#include <batchrpc/transport/inproc.hpp>
#include <memory>
#include <utility>

#include "call_benchmark/child.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/node_client.hpp"
#include "call_benchmark/nodes.hpp"
#include "common/affinity.hpp"
#include "common/statistics.hpp"

namespace call_benchmark {

namespace {

/// Both servers of a transport, in their own processes, or for inproc on threads of this one.
class Servers {
 public:
  Servers(Transport transport, int busy_poll, Interrupt& interrupt)
      : transport_(transport), busy_poll_(busy_poll) {
    if (transport == Transport::inproc) {
      network_ = batchrpc::InprocNetwork::make();
      acceptor_ = InprocAcceptor::make();
      floor_here_.emplace(*acceptor_);
      node_here_.emplace(
          start_server(transport, network_, batchrpc::LogLevel::warning, busy_poll_));
      node_address_ = join_address(*node_here_, transport);
    } else {
      floor_.emplace(Role::floor_server, transport);
      node_.emplace(Role::node_server, transport, "", 0, busy_poll);
      floor_address_ = floor_->read_line(interrupt);
      node_address_ = node_->read_line(interrupt);
    }
  }

  std::unique_ptr<Channel> connect_floor() {
    return acceptor_ ? acceptor_->connect() : connect_socket(transport_, floor_address_);
  }
  /// The process that answers this row's calls; nothing if it is this one.
  [[nodiscard]] std::optional<pid_t> process(const Row& row) const {
    const std::optional<Child>& child = row.floor ? floor_ : node_;
    return child ? std::optional(child->pid()) : std::nullopt;
  }
  /// The setting of the answering node and of the calling nodes.
  [[nodiscard]] std::chrono::microseconds busy_poll() const { return busy_poll_; }
  [[nodiscard]] const std::string& node_address() const { return node_address_; }
  [[nodiscard]] const std::shared_ptr<batchrpc::InprocNetwork>& network() const { return network_; }

 private:
  Transport transport_;
  std::chrono::microseconds busy_poll_;
  std::shared_ptr<batchrpc::InprocNetwork> network_;
  std::unique_ptr<InprocAcceptor> acceptor_;
  std::optional<FloorServerThread> floor_here_;
  std::optional<batchrpc::Node> node_here_;
  std::optional<Child> floor_;
  std::optional<Child> node_;
  std::string floor_address_;
  std::string node_address_;
};

/// The calling nodes of a shape: one with its own I/O thread, or many in one embedded loop.
class Callers {
 public:
  Callers(Transport transport, const Shape& shape, const Servers& servers) {
    const std::string prefix = "client" + to_string(shape) + "-";
    if (shape.connections == 1) {
      one_.emplace(start_client(transport, servers.node_address(), prefix + "0", servers.network(),
                                servers.busy_poll()));
      nodes_.push_back(&*one_);
    } else {
      many_.emplace(transport, servers.node_address(), shape.connections, prefix,
                    servers.network());
      for (const batchrpc::Node& node : many_->nodes())
        nodes_.push_back(&node);
    }
  }

  [[nodiscard]] const std::vector<const batchrpc::Node*>& nodes() const { return nodes_; }

 private:
  std::optional<batchrpc::Node> one_;
  std::optional<EmbeddedNodes> many_;
  std::vector<const batchrpc::Node*> nodes_;
};

Group make_group(const Options& options, const Row& common) {
  Group group;
  for (const Floor floor : options.floors) {
    // On one CPU, two polling threads only wait for each other's time slice to end.
    if (floor == Floor::busy && common.pinned) continue;
    Row row = common;
    row.floor = floor;
    if (floor == Floor::frame_sized) row.bytes = frame_sizes(common.which);
    group.push_back(row);
  }
  for (const Handlers handlers : options.handlers) {
    for (const Style style : options.styles) {
      // A blocked thread waits on one connection, so get() makes no sense with many.
      if (style == Style::get && common.shape.connections > 1) continue;
      for (const int profiler : options.profilers) {
        Row row = common;
        row.handlers = handlers;
        row.style = style;
        row.profiler = profiler;
        row.bytes = frame_sizes(common.which);
        group.push_back(row);
      }
    }
  }
  return group;
}

std::unique_ptr<Client> make_client(const Row& row, Servers& servers, const Callers& callers) {
  if (!row.floor) {
    return make_node_client(callers.nodes(), row.shape.in_flight, row.which, row.handlers,
                            row.style);
  }
  std::vector<std::unique_ptr<Channel>> channels;
  for (int i = 0; i < row.shape.connections; ++i)
    channels.push_back(servers.connect_floor());
  return make_floor_client(std::move(channels), row.shape.in_flight, row.bytes,
                           row.floor == Floor::busy);
}

void measure_round(const Options& options, Row& row, Servers& servers, const Callers& callers,
                   Interrupt& interrupt) {
  const std::unique_ptr<Client> client = make_client(row, servers, callers);
  std::vector<std::unique_ptr<batchrpc::Profiler>> profilers;
  if (row.profiler > 0) {
    const batchrpc::ProfilerOptions how{.sample = static_cast<std::uint64_t>(row.profiler)};
    for (const batchrpc::Node* node : callers.nodes())
      profilers.push_back(std::make_unique<batchrpc::Profiler>(*node, how));
  }
  Sample sample =
      take_sample(*client, options.seconds, row.shape == Shape{}, servers.process(row), interrupt);
  row.calls_per_s.push_back(sample.calls_per_s);
  row.p50_us.push_back(batchrpc_examples::median(sample.rtt_us));
  row.cpu_us.push_back(sample.cpu_us);
  row.rtt_us.insert(row.rtt_us.end(), sample.rtt_us.begin(), sample.rtt_us.end());
}

void measure_group(const Options& options, Group& group, Servers& servers, const Callers& callers,
                   Interrupt& interrupt) {
  for (int round = 0; round < options.rounds; ++round) {
    for (Row& row : group) {
      try {
        measure_round(options, row, servers, callers, interrupt);
      } catch (...) {
        interrupt.check();  // errors after an interrupt are its consequence
        throw;
      }
    }
    std::reverse(group.begin(), group.end());  // so that drift favours neither
  }
  if (options.rounds % 2 != 0) std::reverse(group.begin(), group.end());
}

}  // namespace

CpuTime median_cpu(const Row& row) {
  std::vector<double> client;
  std::vector<double> server;
  for (const CpuTime& time : row.cpu_us) {
    client.push_back(time.client);
    server.push_back(time.server);
  }
  return {.client = batchrpc_examples::median(std::move(client)),
          .server = batchrpc_examples::median(std::move(server))};
}

Ratio ratio(const Row& row, const Row& floor) {
  std::vector<double> rates;
  std::vector<double> trips;
  std::vector<double> cpu;
  for (std::size_t i = 0; i < row.calls_per_s.size(); ++i) {
    rates.push_back(row.calls_per_s[i] / floor.calls_per_s.at(i));
    trips.push_back(row.p50_us[i] / floor.p50_us.at(i));
    cpu.push_back(row.cpu_us.at(i).sum() / floor.cpu_us.at(i).sum());
  }
  return {.calls_per_s = batchrpc_examples::median(std::move(rates)),
          .rtt = batchrpc_examples::median(std::move(trips)),
          .cpu = batchrpc_examples::median(std::move(cpu))};
}

void measure_all(const Options& options, Interrupt& interrupt,
                 const std::function<void(const Group&)>& done) {
  for (const Transport transport : options.transports) {
    for (const bool pinned : options.pinned) {
      const batchrpc_benchmarks::PinnedToOneCpu pin(
          pinned);  // for all threads and processes that start from here on
      Servers servers(transport, options.busy_poll, interrupt);
      for (const Shape& shape : options.shapes) {
        const Callers callers(transport, shape, servers);
        for (const Case which : options.cases) {
          Group group = make_group(
              options, {.transport = transport, .which = which, .shape = shape, .pinned = pinned});
          measure_group(options, group, servers, callers, interrupt);
          done(group);
        }
      }
    }
  }
}

}  // namespace call_benchmark
