#include "parameter_server/server_process.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/meeting_place.hpp"
#include "common/process.hpp"
#include "common/resident_memory.hpp"
#include "parameter_server/checkpoint.hpp"
#include "parameter_server/flat_parameters.hpp"
#include "parameter_server/resnet.hpp"
#include "parameter_server/server_functions.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto kTrainersAreThereWithin = 60s;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::int64_t most_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

// In one piece: others write to the same terminal.
void say(const std::string& line) { std::cerr << "Notice: " + line + "\n" << std::flush; }

/// The other processes, started by that of server 0.
class OtherProcesses {
 public:
  OtherProcesses(const ParameterServerOptions& options, std::vector<std::string> arguments) {
    ProcessOptions process;
    process.arguments = std::move(arguments);
    process.arguments.insert(process.arguments.end(),
                             {"--launched", "--join", options.join, "--rank", ""});
    process.parent_death_signal = 0;  // they notice by themselves, and say so
    for (int rank = 1; rank < options.servers + options.trainers; ++rank) {
      process.arguments.back() = std::to_string(rank);
      processes_.emplace_back(process);
    }
  }
  ~OtherProcesses() { stop_all(processes_); }
  OtherProcesses(const OtherProcesses&) = delete;
  OtherProcesses& operator=(const OtherProcesses&) = delete;

  void check() {
    for (ChildProcess& process : processes_) {
      if (const auto end = process.poll()) {
        throw std::runtime_error("a process of the training " + end->describe() +
                                 " before it had begun");
      }
    }
  }
  void wait() {
    for (ChildProcess& process : processes_)
      process.wait_for(1s);
  }

 private:
  std::vector<ChildProcess> processes_;
};

struct Part {
  at::Tensor values;            // parameters, and in the last part the buffers
  std::int64_t parameters = 0;  // of this part
  std::int64_t parameters_of_all = 0;
  std::int64_t elements_of_all = 0;
};

Part first_values(const ParameterServerOptions& options) {
  const ResNet50 model(options.classes, options.seed);
  at::Tensor values = flat_values(*model, options.buffers);
  std::int64_t parameters = 0;
  for (const at::Tensor& parameter : model->parameters())
    parameters += parameter.numel();
  const std::int64_t elements = values.numel();
  if (options.servers == 1) return {std::move(values), parameters, parameters, elements};
  Shard part = shards(parameters, options.servers).at(static_cast<std::size_t>(*options.rank));
  const std::int64_t of_part = part.size();
  if (*options.rank == options.servers - 1) part.end = elements;
  return {part.of(values).clone(), of_part, parameters, elements};
}

std::string checkpoint_path(const ParameterServerOptions& options) {
  return options.checkpoint + "/" + server_name(options.rank.value()) + ".checkpoint";
}

/// Takes the server's checkpoints, and is asked how the last one went.
class Checkpoints {
 public:
  explicit Checkpoints(const ParameterServerOptions& options)
      : path_(checkpoint_path(options)),
        settings_(model_settings(options)),
        every_(options.checkpoint_every),
        last_(options.mode == UpdateMode::async ? options.iterations * options.trainers
                                                : options.iterations) {}

  void operator()(std::int64_t iterations, SharedModel& model) {
    if (iterations % every_ != 0 && iterations != last_) return;
    std::string error;
    try {
      model.use([&](const at::Tensor& values, const at::Tensor& velocity) {
        write_checkpoint(path_, settings_, {iterations, values, velocity});
      });
    } catch (const CheckpointError& failure) {
      error = failure.what();
      say("no checkpoint after iteration " + std::to_string(iterations - 1) + ": " + error +
          "; the training goes on");
    }
    const std::lock_guard lock(mutex_);
    error_ = error;
  }
  [[nodiscard]] std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  const std::string path_;
  const std::string settings_;
  const int every_;
  const int last_;
  mutable std::mutex mutex_;
  std::string error_;
};

/// Who was lost while the training needed them.
class Losses {
 public:
  void add(const std::string& trainer, const std::string& why, std::size_t others) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(trainer);
    say(trainer + " is lost: " + why + "; the training goes on with " + std::to_string(others) +
        " others");
  }
  [[nodiscard]] std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lost_;
};

ServerOptions server_options(const ParameterServerOptions& options) {
  return {.trainers = static_cast<std::size_t>(options.trainers),
          .iterations = options.iterations,
          .mode = options.mode,
          .sum = {.add = options.sum, .refuse_nan = options.refuse_nan},
          .step = !options.synthetic,
          .in_order_of_ranks = options.check};
}

void watch_peers(const rpc::Node& node, const std::shared_ptr<ParameterServer>& server,
                 const std::shared_ptr<Losses>& losses) {
  node.on_membership([workers = node.workers(), weak = std::weak_ptr(server),
                      losses](const rpc::MembershipChange& change) {
    if (change.joined) return;
    workers->post([weak, losses, name = change.peer.name, reason = change.reason] {
      const auto alive = weak.lock();
      if (!alive || !alive->lose(name)) return;
      losses->add(name, reason, alive->group().members().size());
    });
  });
}

void wait_for_trainers(const TrainingGroup& group, OtherProcesses* processes,
                       const InterruptFlag& interrupts, const rpc::Node& node) {
  const auto end = Clock::now() + kTrainersAreThereWithin;
  while (!group.started()) {
    interrupts.check();
    if (processes != nullptr) processes->check();
    std::string there;
    for (const rpc::PeerInfo& peer : node.peers()) {
      const bool is_lost = peer.state == rpc::PeerState::lost;
      if (is_lost && peer.rank == 0) throw std::runtime_error(peer.name + " is gone");
      if (!is_lost) there += " " + peer.name;
    }
    if (Clock::now() > end) {
      throw std::runtime_error("too few trainers have come within 60 s; there are:" + there);
    }
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace

ServerRun run_server(ParameterServerOptions options, const std::vector<std::string>& arguments,
                     Clock::time_point started, const InterruptFlag& interrupts) {
  use_one_torch_thread();
  const bool starts_others = !options.rank;
  if (starts_others) {
    options.rank = 0;
    options.join = new_meeting_place("parameter_server", options.transport);
  }
  ServerRun run;
  ServerOptions how = server_options(options);
  Part part = first_values(options);
  run.elements = part.parameters_of_all;
  run.message_bytes = static_cast<std::int64_t>(part.values.nbytes());
  give_back_freed_memory();  // the module's, of many sizes
  const std::int64_t memory_without = resident_bytes() - run.message_bytes;
  std::optional<Checkpoint> resumed;
  if (!options.checkpoint.empty()) {
    resumed = read_checkpoint(checkpoint_path(options), model_settings(options),
                              part.values.numel(), part.parameters);
    if (resumed) how.first_iteration = run.first_iteration = resumed->iterations;
  }

  const auto checkpoints = std::make_shared<Checkpoints>(options);
  const auto losses = std::make_shared<Losses>();
  const bool is_async = options.mode == UpdateMode::async;
  const auto record = std::make_shared<RunRecord>(
      static_cast<double>(part.parameters_of_all + part.elements_of_all) * sizeof(float),
      is_async ? options.trainers : 1,
      [quiet = options.quiet, is_async](const IterationRecord& iteration) {
        if (!quiet) std::cout << progress_line(iteration, is_async) << std::endl;
      });
  ServerEvents events;
  events.updated = [record](const UpdateReport& update) { record->updated(update); };
  events.reported = [record](const IterationReport& report) { record->reported(report); };
  if (!options.checkpoint.empty()) {
    events.checkpoint = [checkpoints](std::int64_t iterations, SharedModel& model) {
      (*checkpoints)(iterations, model);
    };
  }
  const auto server = std::make_shared<ParameterServer>(
      how, std::move(part.values), part.parameters,
      SgdOptions{.learning_rate = options.learning_rate, .momentum = options.momentum}, events);
  if (resumed) server->model().restore(resumed->values, resumed->velocity);
  resumed.reset();

  rpc::Node node(node_options(options));
  watch_peers(node, server, losses);
  expose(node, server);
  std::optional<OtherProcesses> processes;
  if (starts_others) processes.emplace(options, arguments);

  wait_for_trainers(server->group(), processes ? &*processes : nullptr, interrupts, node);
  const auto begun = Clock::now();
  while (!server->group().over()) {
    interrupts.check();
    std::this_thread::sleep_for(5ms);
  }
  run.setup_seconds = seconds_between(started, begun);
  run.work_seconds = seconds_between(begun, Clock::now());
  run.memory_bytes = most_resident_bytes() - memory_without;
  run.iterations = record->finish();
  run.lost = losses->all();
  run.checkpoint_error = checkpoints->error();
  run.values = server->result();
  if (!run.values.defined()) run.values = server->model().values();
  const std::int64_t finished = server->group().iteration();
  if (!is_async && finished < options.iterations) {
    throw std::runtime_error("every trainer is lost, after " + std::to_string(finished) + " of " +
                             std::to_string(options.iterations) + " iterations");
  }
  if (processes) processes->wait();
  return run;
}

}  // namespace batchrpc_examples
