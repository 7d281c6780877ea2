#include <torch/types.h>
#include <batchrpc/profile.hpp>
#include <batchrpc/torch.hpp>
#include <iostream>

#include "common/command_line.hpp"
#include "common/meeting_place.hpp"
#include "common/process.hpp"
#include "profile_example/functions.hpp"
#include "profile_example/options.hpp"
#include "torch_settings/torch_settings.hpp"

// PyTorch's recipe for profiling RPC, in C++: built-in operators, a function of the program, the
// effect of the number of worker threads, and one trace of all processes.
namespace {

using namespace batchrpc_examples;
namespace rpc = batchrpc;
using Tensor = at::Tensor;

constexpr const char* kNarrow = "worker1";  // with one worker thread
constexpr const char* kWide = "worker2";    // with eight

rpc::NodeOptions node_options(const ProfileExampleOptions& options) {
  return {.name = "worker" + std::to_string(options.rank),
          .rank = options.rank,
          .world_size = 3,
          .join = options.meeting_place,
          .num_worker_threads = options.worker_threads,
          .profiling = {.operators = rpc::torch_operators()}};
}

// Serves until worker0, which gathers this process's records, is gone.
int run_worker(const ProfileExampleOptions& options) {
  rpc::Node node(node_options(options));
  const rpc::Profiler profiler(node);
  // Makes a call of its own before worker0 can call anything. worker0 learns about it only through
  // gather().
  if (node.name() == kNarrow) node.call<&function_with_operators>(kWide).get();
  rpc::expose_operators(node, {"aten::add", "aten::mul"});
  node.expose("passed_on", [&node] { return node.call<&function_with_operators>(kWide); });
  node.expose<&function_with_operators>();
  node.expose<&heavy_function>();
  node.expose<&waiting_function>();
  rpc::Promise<void> gone;
  auto is_gone = gone.get_future();
  node.on_membership([&gone](const rpc::MembershipChange& change) {
    if (!change.joined && change.peer.name == "worker0" && gone.pending()) gone.set_value();
  });
  std::move(is_gone).get();
  return 0;
}

void show(const rpc::Profiler& profiler, const std::string& title, const std::string& path) {
  auto table = profiler.key_averages();
  table.sort_by(rpc::ProfileSort::total);
  std::cout << "\n== " << title << "\n\n" << table.table() << "\n" << table.phases_table();
  profiler.export_chrome_trace(path);
  std::cout << "\nTrace: " << path << "\n";
}

void profile_operators(const rpc::Node& node, const std::string& folder) {
  const rpc::Profiler profiler(node);
  const Tensor t1 = torch::rand({3, 3});
  const Tensor t2 = torch::rand({3, 3});
  auto sum = node.call<Tensor(Tensor, Tensor)>(kNarrow, "aten::add", t1, t2);
  auto product = node.call<Tensor(Tensor, Tensor)>(kNarrow, "aten::mul", t1, t2);
  rpc::when_all(std::move(sum), std::move(product)).get();
  show(profiler, "Built-in operators", folder + "/operators.trace.json");
}

void profile_function(const rpc::Node& node, const std::string& folder) {
  const rpc::Profiler profiler(node);
  node.call<&function_with_operators>(kNarrow).get();
  show(profiler, "A function of the program", folder + "/function.trace.json");
}

// The total time of all calls, in milliseconds.
double together(const rpc::Profiler& profiler, const std::string& callee) {
  rpc::Duration sum{};
  for (const rpc::CallRecord& call : profiler.recording().calls) {
    if (call.callee.node == callee) sum += call.ended - call.called;
  }
  return std::chrono::duration<double, std::milli>(sum).count();
}

// Makes `calls` calls at once, first to one worker and then to the other.
template <class MakeCall>
void profile_threads(const rpc::Node& node, const std::string& title, const std::string& path,
                     int calls, const MakeCall& make_call) {
  const rpc::Profiler profiler(node);
  for (const char* const worker : {kNarrow, kWide}) {
    std::vector<rpc::Future<void>> under_way;
    for (int i = 0; i < calls; ++i)
      under_way.push_back(make_call(worker));
    rpc::when_all(std::move(under_way)).get();
  }
  show(profiler, title, path);
  std::cout << calls << " calls, the sum of their times: " << together(profiler, kNarrow)
            << " ms with 1 worker thread, " << together(profiler, kWide) << " ms with 8\n";
}

// Shows the records of all three processes, in one trace on one clock.
void profile_all(const rpc::Node& node, const std::string& folder) {
  rpc::Profiler profiler(node);
  node.call<Tensor()>(kNarrow, "passed_on").get();
  for (const std::string& missing : profiler.gather())
    std::cerr << "not gathered: " << missing << "\n";
  show(profiler, "All processes, gathered", folder + "/gathered.trace.json");
}

int run(int argc, const char* const* argv) {
  auto options = parse_profile_options(argc, argv);
  if (!options) return 0;
  use_one_torch_thread();
  if (options->rank != 0) return run_worker(*options);

  options->meeting_place = new_meeting_place("profile_example", TransportChoice::automatic);
  std::vector<ChildProcess> workers;
  for (const int rank : {1, 2}) {
    workers.emplace_back(ProcessOptions{.arguments = {"--rank", std::to_string(rank),
                                                      "--meeting-place", options->meeting_place,
                                                      "--worker-threads", rank == 1 ? "1" : "8"}});
  }
  {
    const rpc::Node node(node_options(*options));
    const Tensor start = torch::rand({100, 100});
    for (const char* const worker : {kNarrow, kWide}) {  // connects, and starts LibTorch's threads
      std::vector<rpc::Future<Tensor>> calls;
      for (int i = 0; i < 8; ++i)
        calls.push_back(node.call<&heavy_function>(worker, start));
      rpc::when_all(std::move(calls)).get();
    }

    profile_operators(node, options->output_dir);
    profile_function(node, options->output_dir);
    profile_threads(node, "A function that computes, with 1 and with 8 worker threads",
                    options->output_dir + "/computing.trace.json", options->calls,
                    [&](const char* worker) {
                      return node.call<&heavy_function>(worker, start).then([](const Tensor&) {});
                    });
    profile_threads(node, "A function that waits, with 1 and with 8 worker threads",
                    options->output_dir + "/waiting.trace.json", options->calls,
                    [&](const char* worker) {
                      return node.call<&waiting_function>(worker, options->waiting_ms);
                    });
    profile_all(node, options->output_dir);
  }
  for (ChildProcess& worker : workers)
    worker.wait_for(std::chrono::seconds(5));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_program("profile_example", &run, argc, argv); }
