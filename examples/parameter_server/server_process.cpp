#include "parameter_server/server_process.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/counted.hpp"
#include "common/meeting_place.hpp"
#include "common/process.hpp"
#include "common/resident_memory.hpp"
#include "parameter_server/checkpoints.hpp"
#include "parameter_server/flat_parameters.hpp"
#include "parameter_server/loss_watch.hpp"
#include "parameter_server/notice.hpp"
#include "parameter_server/resnet.hpp"
#include "parameter_server/server_functions.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto kTrainersAreThereWithin = 60s;
constexpr auto kServersAreThereWithin = 60s;
constexpr auto kServersEndWithin = 60s;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::int64_t most_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// The other processes, started by that of server 0.
class OtherProcesses {
 public:
  OtherProcesses(const ParameterServerOptions& options, std::vector<std::string> arguments)
      : servers_(static_cast<std::size_t>(options.servers)) {
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
  /// Until they have ended; servers have a last checkpoint to write. Gives those of them that
  /// failed.
  std::vector<std::string> wait() {
    std::vector<std::string> failed;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const bool is_server = i + 1 < servers_;
      const auto end = processes_[i].wait_for(is_server ? kServersEndWithin : 1s);
      if (!is_server || (end && end->success())) continue;
      failed.push_back(server_name(static_cast<int>(i) + 1) + " " +
                       (end ? end->describe() : "does not end"));
      say(failed.back());
    }
    return failed;
  }

 private:
  const std::size_t servers_;
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
  Part part;
  part.parameters_of_all = flat_elements(*model, false);
  part.elements_of_all = flat_elements(*model, options.buffers);
  Shard place =
      shards(part.parameters_of_all, options.servers).at(static_cast<std::size_t>(*options.rank));
  part.parameters = place.size();
  if (*options.rank == options.servers - 1) place.end = part.elements_of_all;
  part.values = flat_values(*model, options.buffers, place);
  return part;
}

/// Who was lost while the training needed them.
class Losses {
 public:
  void add(const std::string& trainer, const std::string& why, std::size_t others) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(trainer);
    say(trainer + " is lost: " + why + "; " +
        (others > 0 ? "the training goes on with " + std::to_string(others) + " of the trainers"
                    : "nobody is left to train"));
  }
  [[nodiscard]] std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lost_;
};

ServerOptions server_options(const ParameterServerOptions& options, std::int64_t first_iteration) {
  return {.trainers = static_cast<std::size_t>(options.trainers),
          .first_iteration = first_iteration,
          .iterations = options.iterations,
          .mode = options.mode,
          .sum = {.add = options.sum, .refuse_nan = options.refuse_nan},
          .step = !options.synthetic,
          .in_order_of_ranks = options.check};
}

/// The iteration that all servers go on from, by what each has on its disk, and this one its `own`.
std::int64_t first_iteration(const rpc::Node& node, const ParameterServerOptions& options,
                             const std::vector<std::int64_t>& own,
                             const std::function<void()>& check) {
  node.expose("restorable", [own] { return own; });
  Restorable all{{server_name(*options.rank), own}};
  const auto wait = [&](const auto& future) {
    while (!future.wait_for(5ms))
      check();
  };
  for (int index = 0; index < options.servers; ++index) {
    if (index == *options.rank) continue;
    const std::string name = server_name(index);
    auto there = node.wait_for_peer(name, kServersAreThereWithin);
    wait(there);
    there.get();
    auto theirs = node.call<std::vector<std::int64_t>()>(name, "restorable");
    wait(theirs);
    all[name] = theirs.get();
  }
  const std::int64_t iteration = newest_common(all);
  if (iteration >= options.iterations) {
    throw CheckpointError("nothing is left to do: the checkpoints in " + options.checkpoint +
                          " have had " + counted(iteration, "iteration") + ", and " +
                          "--iterations, which counts those, too, is " +
                          std::to_string(options.iterations));
  }
  return iteration;
}

void watch_peers(const rpc::Node& node, const std::shared_ptr<ParameterServer>& server,
                 const std::shared_ptr<Losses>& losses, const ParameterServerOptions& options) {
  std::set<std::string> servers;
  for (int index = 0; options.rank == 0 && index < options.servers; ++index)
    servers.insert(server_name(index));
  node.on_membership([workers = node.workers(), weak = std::weak_ptr(server), losses,
                      servers = std::move(servers),
                      iterations = options.iterations](const rpc::MembershipChange& change) {
    if (change.joined) return;
    workers->post([weak, losses, servers, iterations, peer = change.peer, reason = change.reason] {
      const auto alive = weak.lock();
      if (!alive) return;
      if (servers.contains(peer.name) && alive->group().iteration() < iterations) {
        say(peer.name + " is lost: " + reason + "; the trainers end");
      }
      if (!alive->lose({peer.name, peer.rank, peer.incarnation})) return;
      losses->add(peer.name, reason, alive->group().members().size());
    });
  });
}

bool trainers_changed(const ParameterServerOptions& options, const ServerRun& run) {
  return !run.lost.empty() ||
         std::any_of(run.iterations.begin(), run.iterations.end(),
                     [&](const auto& iteration) { return iteration.trainers != options.trainers; });
}

void wait_for_trainers(const TrainingGroup& group, const std::function<void()>& check,
                       const rpc::Node& node) {
  const auto end = Clock::now() + kTrainersAreThereWithin;
  while (!group.started()) {
    check();
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

std::shared_ptr<RunRecord> make_record(const ParameterServerOptions& options, const Part& part) {
  const double bytes =
      static_cast<double>(part.parameters_of_all + part.elements_of_all) * sizeof(float);
  const bool is_async = options.mode == UpdateMode::async;
  return std::make_shared<RunRecord>(
      bytes, [quiet = options.quiet, is_async](const IterationRecord& iteration) {
        if (!quiet) std::cout << progress_line(iteration, is_async) << std::endl;
      });
}

ServerEvents server_events(const std::shared_ptr<RunRecord>& record,
                           const std::shared_ptr<Checkpoints>& checkpoints) {
  ServerEvents events;
  events.updated = [record](const UpdateReport& update) { record->updated(update); };
  events.reported = [record, watch = std::make_shared<LossWatch>(&say)](
                        const std::string& trainer, const IterationReport& report) {
    watch->reported(trainer, report);
    record->reported(report);
  };
  if (checkpoints) {
    events.checkpoint = [checkpoints](const UpdateReport& update, SharedModel& model) {
      checkpoints->updated(update, model);
    };
  }
  return events;
}

/// A server from its beginning to its end; what there is to tell goes into `run`.
class ServerProcess {
 public:
  /// For options with a rank. Its checkpoints are looked at before another process knows of it.
  ServerProcess(const ParameterServerOptions& options, const InterruptFlag& interrupts,
                ServerRun& run)
      : options_(options), interrupts_(interrupts), run_(run), part_(first_values(options)) {
    run_.elements = part_.parameters_of_all;
    run_.message_bytes = static_cast<std::int64_t>(part_.values.nbytes());
    run_.gradients = gradient_settings(options);
    give_back_freed_memory();  // the module's, of many sizes
    memory_without_ = resident_bytes() - run_.message_bytes;
    record_ = make_record(options, part_);
    if (!options.checkpoint.empty()) {
      checkpoints_ = std::make_shared<Checkpoints>(options);
      restorable_ = checkpoints_->restorable();
    }
    node_.emplace(node_options(options));
  }

  void start_others(const std::vector<std::string>& arguments) {
    processes_.emplace(options_, arguments);
  }

  void agree_on_checkpoint() {
    if (!checkpoints_) return;
    run_.first_iteration =
        first_iteration(*node_, options_, restorable_, [this] { check_beginning(); });
    resumed_ = checkpoints_->restore(run_.first_iteration, part_.values.numel(), part_.parameters);
    if (!resumed_) return;
    run_.gradients = resumed_->history;
    if (options_.rank == 0 && !options_.quiet) {
      std::cout << "Going on from the checkpoints after "
                << counted(run_.first_iteration, "iteration") << std::endl;
    }
  }

  void serve(Clock::time_point started) {
    begin();
    wait_for_trainers(
        server_->group(), [this] { check_beginning(); }, *node_);
    begun_ = Clock::now();
    run_.setup_seconds = seconds_between(started, *begun_);
    while (!server_->group().over()) {
      interrupts_.check();
      std::this_thread::sleep_for(5ms);
    }
  }

  /// Also of a run that fails.
  void measure() {
    if (begun_) run_.work_seconds = seconds_between(*begun_, Clock::now());
    run_.memory_bytes = most_resident_bytes() - memory_without_;
    run_.iterations = record_->finish();
    run_.lost = losses_->all();
    if (run_.gradients == gradient_settings(options_) && trainers_changed(options_, run_)) {
      run_.gradients = kChangingTrainers;
    }
  }

  void finish() {
    run_.values = server_->result();
    if (!run_.values.defined()) run_.values = server_->model().values();
    const std::int64_t finished = server_->group().iteration();
    if (checkpoints_) {
      checkpoints_->finish(finished, server_->model());
      run_.checkpoint_error = checkpoints_->error();
    }
    if (finished < options_.iterations) {
      throw std::runtime_error("every trainer is lost, after " + std::to_string(finished) + " of " +
                               counted(options_.iterations, "iteration"));
    }
    if (processes_) run_.failed_servers = processes_->wait();
  }

 private:
  void check_beginning() {
    interrupts_.check();
    if (processes_) processes_->check();
  }

  void begin() {
    server_ = std::make_shared<ParameterServer>(
        server_options(options_, run_.first_iteration), std::move(part_.values), part_.parameters,
        SgdOptions{.learning_rate = options_.learning_rate, .momentum = options_.momentum},
        server_events(record_, checkpoints_));
    if (resumed_) server_->model().restore(resumed_->values, resumed_->velocity);
    resumed_.reset();
    watch_peers(*node_, server_, losses_, options_);
    expose(*node_, server_);
  }

  const ParameterServerOptions options_;
  const InterruptFlag& interrupts_;
  ServerRun& run_;
  Part part_;
  std::int64_t memory_without_ = 0;
  std::shared_ptr<RunRecord> record_;
  std::shared_ptr<Checkpoints> checkpoints_;  // none without a folder
  std::vector<std::int64_t> restorable_;
  std::optional<Checkpoint> resumed_;
  std::optional<Clock::time_point> begun_;  // the first iteration
  const std::shared_ptr<Losses> losses_ = std::make_shared<Losses>();
  std::shared_ptr<ParameterServer> server_;  // outlives the node
  std::optional<rpc::Node> node_;
  std::optional<OtherProcesses> processes_;
};

}  // namespace

void run_server(ParameterServerOptions options, const std::vector<std::string>& arguments,
                Clock::time_point started, const InterruptFlag& interrupts, ServerRun& run) {
  use_one_torch_thread();
  const bool starts_others = !options.rank;
  if (starts_others) {
    options.rank = 0;
    options.join = new_meeting_place("parameter_server", options.transport);
  }
  ServerProcess process(options, interrupts, run);
  if (starts_others) process.start_others(arguments);
  try {
    process.agree_on_checkpoint();
    process.serve(started);
  } catch (...) {
    process.measure();
    throw;
  }
  process.measure();
  process.finish();
}

}  // namespace batchrpc_examples
