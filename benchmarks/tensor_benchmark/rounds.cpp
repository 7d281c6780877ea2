#include "tensor_benchmark/rounds.hpp"

#include <unistd.h>

#include <algorithm>
#include <batchrpc/transport/inproc.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "common/affinity.hpp"
#include "common/node_pair.hpp"
#include "common/statistics.hpp"
#include "common/talking_child.hpp"
#include "tensor_benchmark/child.hpp"
#include "tensor_benchmark/copies.hpp"
#include "tensor_benchmark/floor.hpp"
#include "tensor_benchmark/node_side.hpp"
#include "tensor_benchmark/tensors.hpp"

namespace tensor_benchmark {

namespace {

using batchrpc_benchmarks::TalkingChild;
using batchrpc_examples::median;

/// Both servers of a transport, in their own processes, or for inproc a node of this one; and the
/// calling node.
class Ends {
 public:
  Ends(const Options& options, Transport transport, CopyCounts& counts, Check check)
      : transport_(transport), check_(std::move(check)) {
    if (transport == Transport::inproc) {
      const auto network = batchrpc::InprocNetwork::make();
      server_.emplace(start_server(transport, options.handlers, network));
      client_.emplace(start_client(transport, join_address(*server_, transport), network));
      return;
    }
    const auto start = [&](Role role, std::optional<TalkingChild>& child) {
      child.emplace([&](int line_file) {
        return child_arguments(role, transport, options.handlers, line_file, counts.file());
      });
    };
    if (options.floor) start(Role::floor_server, floor_process_);
    start(Role::node_server, node_process_);
    if (options.floor) floor_address_ = floor_process_->read_line(check_);
    client_.emplace(start_client(transport, node_process_->read_line(check_)));
  }

  [[nodiscard]] std::unique_ptr<Client> make_client(const Row& row,
                                                    const at::Tensor& tensor) const {
    if (!row.floor) return make_node_client(*client_, row.which, row.receive, tensor, check_);
    if (transport_ == Transport::inproc) return make_memory_floor(row.which, tensor, check_);
    return make_floor_client(
        batchrpc_benchmarks::connect_to(socket_kind(transport_), floor_address_), row.which, tensor,
        check_);
  }

  /// The process that answers this row's calls; nothing if it is this one.
  [[nodiscard]] std::optional<pid_t> process(const Row& row) const {
    const std::optional<TalkingChild>& child = row.floor ? floor_process_ : node_process_;
    return child ? std::optional(child->pid()) : std::nullopt;
  }

  /// Throws std::runtime_error if a server has ended, because that is the cause of the error.
  void require_servers() {
    constexpr auto kEnding = std::chrono::milliseconds(200);  // its sockets are closed before that
    for (auto* child : {&floor_process_, &node_process_}) {
      if (!*child) continue;
      const auto exit = (*child)->wait_for(kEnding);
      if (exit) throw std::runtime_error("a server process " + exit->describe());
    }
  }

 private:
  Transport transport_;
  Check check_;
  std::optional<TalkingChild> floor_process_;
  std::optional<TalkingChild> node_process_;
  std::string floor_address_;
  std::optional<batchrpc::Node> server_;
  std::optional<batchrpc::Node> client_;
};

void measure_round(double seconds, Row& row, Client& client, std::optional<pid_t> server) {
  Sample sample = take_sample(client, row.which, seconds, server);
  row.gb_per_s.push_back(sample.gb_per_s);
  row.p50_us.push_back(median(sample.us));
  row.cpu_s_per_gb.push_back(sample.cpu_s_per_gb);
  row.fresh_pages.push_back(sample.fresh_pages);
  row.us.insert(row.us.end(), sample.us.begin(), sample.us.end());
}

void measure_group(const Options& options, Group& group, const Ends& ends, CopyCounts& counts) {
  const Case& which = group.front().which;
  const at::Tensor tensor = make_tensor(which.bytes, which.contiguous);
  std::vector<std::unique_ptr<Client>> clients;
  for (Row& row : group) {
    clients.push_back(ends.make_client(row, tensor));
    row.copies = count_copies(*clients.back(), which, counts);
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      // Alternates the direction, so that drift favours neither.
      const std::size_t index = round % 2 == 0 ? i : group.size() - 1 - i;
      measure_round(options.seconds, group[index], *clients[index], ends.process(group[index]));
    }
  }
}

std::vector<Case> cases_of(const Options& options, Transport transport, bool pinned) {
  std::vector<Case> cases;
  for (const Mode mode : options.modes) {
    for (const int window : options.windows_of(mode)) {
      for (const bool contiguous : options.contiguous) {
        for (const std::uint64_t bytes : options.bytes)
          cases.push_back({transport, mode, bytes, window, contiguous, pinned});
      }
    }
  }
  return cases;
}

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// The median over all rounds.
template <class Get>
double median_of(std::size_t rounds, const Get& get) {
  std::vector<double> values;
  for (std::size_t i = 0; i < rounds; ++i)
    values.push_back(get(i));
  return median(std::move(values));
}

}  // namespace

Ratio ratio(const Row& row, const Row& floor) {
  const std::size_t rounds = row.gb_per_s.size();
  return {
      .gb_per_s =
          median_of(rounds, [&](std::size_t i) { return row.gb_per_s[i] / floor.gb_per_s.at(i); }),
      .p50 = median_of(rounds, [&](std::size_t i) { return row.p50_us[i] / floor.p50_us.at(i); }),
      .cpu = median_of(rounds, [&](std::size_t i) {
        return row.cpu_s_per_gb[i].sum() / floor.cpu_s_per_gb.at(i).sum();
      })};
}

CpuTime median_cpu(const Row& row) {
  const auto& all = row.cpu_s_per_gb;
  return {.client = median_of(all.size(), [&](std::size_t i) { return all[i].client; }),
          .server = median_of(all.size(), [&](std::size_t i) { return all[i].server; })};
}

Sides median_pages(const Row& row) {
  const auto& all = row.fresh_pages;
  return {.client = median_of(all.size(), [&](std::size_t i) { return all[i].client; }),
          .server = median_of(all.size(), [&](std::size_t i) { return all[i].server; })};
}

Group make_group(const Options& options, const Case& which) {
  Group group;
  if (options.floor) group.push_back({.which = which, .floor = true, .receive = Receive::reused});
  if (which.mode == Mode::push) {
    group.push_back({.which = which, .receive = Receive::fresh});
  } else {
    for (const Receive receive : options.receive)
      group.push_back({.which = which, .receive = receive});
  }
  return group;
}

void measure_all(const Options& options, const batchrpc::InterruptFlag& interrupts,
                 const std::function<void(const Group&)>& done,
                 const std::function<void(const std::string&)>& say) {
  CopyCounts counts;
  const Check check = [&] { interrupts.check(); };
  for (const Transport transport : options.transports) {
    for (const bool pinned : options.pinned) {
      // For all threads and processes that start from here on.
      const batchrpc_benchmarks::PinnedToOneCpu pin(pinned);
      Ends ends(options, transport, counts, check);
      for (const Case& which : cases_of(options, transport, pinned)) {
        if (needed_memory(which) > machine_memory() / 2) {
          say("left out because it needs " + bytes_text(needed_memory(which)) + ": " +
              std::string(to_string(transport)) + " " + std::string(to_string(which.mode)) +
              " of " + bytes_text(which.bytes) + ", window " + std::to_string(which.window));
          continue;
        }
        Group group = make_group(options, which);
        try {
          measure_group(options, group, ends, counts);
        } catch (...) {
          check();  // errors after a signal are its consequence
          ends.require_servers();
          throw;
        }
        done(group);
      }
    }
  }
}

}  // namespace tensor_benchmark
