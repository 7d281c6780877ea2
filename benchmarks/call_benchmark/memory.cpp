#include "call_benchmark/memory.hpp"

#include <batchrpc/transport/inproc.hpp>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "call_benchmark/child.hpp"
#include "call_benchmark/functions.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/report.hpp"

namespace call_benchmark {

namespace {

constexpr int kConnections = 256;
constexpr int kPending = 100'000;

/// Long enough for nodes to free unused memory, which they do once a second.
constexpr auto kSettling = std::chrono::milliseconds(2500);

class Report {
 public:
  explicit Report(std::ostream& out) : out_(out) {}

  void add(Transport transport, const char* what, const char* side, std::int64_t bytes, int count) {
    const double each = static_cast<double>(bytes) / count;
    char line[128];
    std::snprintf(line, sizeof line, "%-9s %-13s %-12s %10.0f B  (of %d)\n",
                  std::string(to_string(transport)).c_str(), what, side, each, count);
    out_ << line << std::flush;
    entries_.push_back({{"system", "batchrpc"},
                        {"case", "memory"},
                        {"transport", to_string(transport)},
                        {"what", what},
                        {"side", side},
                        {"bytes", each},
                        {"count", count},
                        {"machine", machine()}});
  }
  [[nodiscard]] nlohmann::json entries() const { return entries_; }

 private:
  std::ostream& out_;
  nlohmann::json entries_ = nlohmann::json::array();
};

void call_once(const batchrpc::Node& node, const std::string& peer) {
  if (node.call<&scale_short>(peer, 2.0, 20, 2).get() != 42) {
    throw std::runtime_error("a call's result is wrong");
  }
}

void measure_connections(Transport transport, Report& report, Interrupt& interrupt) {
  {
    Child many(Role::many_nodes, transport, {}, kConnections);
    const std::string address = many.read_line(interrupt);
    Child one(Role::calling_node, transport, address, kConnections);
    report.add(transport, "connection", "calling", std::stoll(one.read_line(interrupt)),
               kConnections);
  }
  Child one(Role::called_node, transport, {}, kConnections);
  const std::string address = one.read_line(interrupt);
  const Child many(Role::joining_nodes, transport, address, kConnections);
  report.add(transport, "connection", "called", std::stoll(one.read_line(interrupt)), kConnections);
}

void measure_pending(Transport transport, Report& report, Interrupt& interrupt) {
  const bool inproc = transport == Transport::inproc;
  std::optional<Child> called;
  std::string address;
  if (!inproc) {
    called.emplace(Role::node_server, transport);
    address = called->read_line(interrupt);
  }
  Child calling(Role::pending_calls, transport, address, kPending);
  report.add(transport, "pending call", inproc ? "both" : "calling",
             std::stoll(calling.read_line(interrupt)), kPending);
  if (inproc) return;
  report.add(transport, "pending call", "called", std::stoll(calling.read_line(interrupt)),
             kPending);
}

}  // namespace

nlohmann::json measure_memory(const Options& options, std::ostream& out, Interrupt& interrupt) {
  Report report(out);
  out << "resident memory, without the kernel's socket buffers\n";
  for (const Transport transport : options.transports) {
    // Inproc nodes share a process, so their separate memory cannot be measured.
    if (transport != Transport::inproc) measure_connections(transport, report, interrupt);
    measure_pending(transport, report, interrupt);
  }
  return report.entries();
}

void run_many_nodes(Transport transport, int count, const Say& say) {
  allow_many_descriptors();
  static const batchrpc::Node root = start_server(transport);
  static const EmbeddedNodes nodes(transport, join_address(root, transport), count, "many");
  for (const batchrpc::Node& node : nodes.nodes())
    expose_functions(node);
  say(join_address(root, transport));
}

void run_calling_node(Transport transport, const std::string& address, int count, const Say& say) {
  allow_many_descriptors();
  const batchrpc::Node node = start_client(transport, address, "calling");
  for (int i = 0; i < count; ++i)
    node.wait_for_peer("many" + std::to_string(i), std::chrono::seconds(20)).get();
  call_once(node, kServer);
  const std::int64_t before = resident_bytes();
  for (int i = 0; i < count; ++i)
    call_once(node, "many" + std::to_string(i));
  std::this_thread::sleep_for(kSettling);
  say(std::to_string(resident_bytes() - before));
}

void run_called_node(Transport transport, int count, const Say& say) {
  allow_many_descriptors();
  static const batchrpc::Node root = start_server(transport);
  const std::int64_t before = resident_bytes();
  say(join_address(root, transport));
  while (root.peers().size() < static_cast<std::size_t>(count))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(kSettling);
  say(std::to_string(resident_bytes() - before));
}

void run_joining_nodes(Transport transport, const std::string& address, int count, const Say& say) {
  allow_many_descriptors();
  static const EmbeddedNodes nodes(transport, address, count, "joining");
  for (const batchrpc::Node& node : nodes.nodes())
    call_once(node, kServer);
  say("called");
}

void run_pending_calls(Transport transport, const std::string& address, int count, const Say& say) {
  std::shared_ptr<batchrpc::InprocNetwork> network;
  std::optional<batchrpc::Node> server;
  if (transport == Transport::inproc) {
    network = batchrpc::InprocNetwork::make();
    server.emplace(start_server(transport, network));
  }
  const batchrpc::Node node = start_client(
      transport, server ? join_address(*server, transport) : address, "calling", network);
  std::vector<batchrpc::Future<std::int32_t>> futures(static_cast<std::size_t>(count));
  node.call<&Held::reserve>(kServer, count).get();
  node.call<&resident_bytes>(kServer).get();
  const std::int64_t own = resident_bytes();
  const std::int64_t other = node.call<&resident_bytes>(kServer).get();
  for (int i = 0; i < count; ++i)
    futures[static_cast<std::size_t>(i)] = node.call<&Held::hold>(kServer, i);
  while (node.call<&Held::count>(kServer).get() < count) {
  }
  say(std::to_string(resident_bytes() - own));
  say(std::to_string(node.call<&resident_bytes>(kServer).get() - other));
  node.call<&Held::release>(kServer).get();
  for (batchrpc::Future<std::int32_t>& future : futures)
    std::move(future).get();
}

}  // namespace call_benchmark
