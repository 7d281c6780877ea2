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
#include "common/notice.hpp"
#include "common/process.hpp"
#include "common/resident_memory.hpp"
#include "common/seconds_between.hpp"
#include "flat_parameters/flat_parameters.hpp"
#include "parameter_server/agreement.hpp"
#include "parameter_server/checkpoints.hpp"
#include "parameter_server/loss_watch.hpp"
#include "parameter_server/losses.hpp"
#include "parameter_server/other_processes.hpp"
#include "parameter_server/resnet.hpp"
#include "parameter_server/server_functions.hpp"
#include "parameter_server/waiting_notice.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto kTrainersAreThereWithin = 60s;

std::int64_t most_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

struct Part {
  at::Tensor values;            // parameters, and in the last part the buffers too
  std::int64_t parameters = 0;  // parameters of this part
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

ServerOptions server_options(const ParameterServerOptions& options, std::int64_t first_iteration) {
  return {.trainers = static_cast<std::size_t>(options.trainers),
          .first_iteration = first_iteration,
          .iterations = options.iterations,
          .mode = options.mode,
          .sum = {.add = options.sum, .refuse_nan = options.refuse_nan},
          .step = !options.synthetic,
          .in_order_of_ranks = options.check};
}

/// The iteration from which all servers continue, given each one's checkpoints; `own` are this
/// server's.
std::int64_t first_iteration(const rpc::Node& node, const ParameterServerOptions& options,
                             const OwnCheckpoints& own, const std::function<void()>& check) {
  const std::string name = server_name(*options.rank);
  const auto wait = [&](const auto& future) {
    while (!future.wait_for(5ms))
      check();
    return future.get();
  };
  if (options.rank != 0) {
    wait(node.wait_for_peer(server_name(0), kServersAreThereWithin));
    const auto agreed = wait(node.call<AgreedIteration(std::string, OwnCheckpoints)>(
        server_name(0), "agree", name, own));
    if (!agreed.error.empty()) throw NoAgreement(agreed.error);
    return agreed.iteration;
  }
  const auto agreement = std::make_shared<Agreement>(options);
  node.expose("agree", [agreement](const std::string& server, const OwnCheckpoints& its) {
    return agreement->notify(server, its);
  });
  const auto end = Clock::now() + kServersAreThereWithin;
  const auto agreed = agreement->notify(name, own);
  while (!agreed.wait_for(5ms)) {
    check();
    if (Clock::now() > end) {
      throw std::runtime_error(agreement->missing().front() + " did not join within 60 s");
    }
  }
  if (const std::string error = agreed.get().error; !error.empty()) throw CheckpointError(error);
  return agreed.get().iteration;
}

void watch_peers(const rpc::Node& node, const std::shared_ptr<ParameterServer>& server,
                 const std::shared_ptr<Losses>& losses, const ParameterServerOptions& options) {
  std::set<std::string> servers;
  for (int index = 0; index < options.servers; ++index)
    servers.insert(server_name(index));
  node.on_membership([workers = node.workers(), weak = std::weak_ptr(server), losses,
                      servers = std::move(servers),
                      iterations = options.iterations](const rpc::MembershipChange& change) {
    if (change.joined) return;
    workers->post([weak, losses, servers, iterations, peer = change.peer, reason = change.reason] {
      const auto alive = weak.lock();
      if (!alive) return;
      if (servers.contains(peer.name) && alive->group().iteration() < iterations) {
        losses->server_lost(peer.name, reason);
      }
      if (!alive->lose({peer.name, peer.rank, peer.incarnation})) return;
      losses->trainer_lost(peer.name, reason, alive->group().members().size());
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
      throw std::runtime_error("too few trainers joined within 60 s; joined were:" + there);
    }
    std::this_thread::sleep_for(5ms);
  }
}

/// Server 0 reports losses; the other servers only keep them.
std::shared_ptr<Losses> make_losses(const ParameterServerOptions& options,
                                    const batchrpc::InterruptFlag& interrupts) {
  return std::make_shared<Losses>(
      [speaks = options.rank == 0](const std::string& notice) {
        if (speaks) say(notice);
      },
      [&interrupts] { return interrupts.is_set(); });
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
                           const std::shared_ptr<Checkpoints>& checkpoints,
                           const std::shared_ptr<Losses>& losses) {
  ServerEvents events;
  const auto notify = [losses](const std::string& notice) { losses->notify(notice); };
  events.updated = [record](const UpdateReport& update) { record->updated(update); };
  events.reported = [record, watch = std::make_shared<LossWatch>(notify)](
                        const std::string& trainer, const IterationReport& report) {
    watch->reported(trainer, report);
    record->reported(report);
  };
  events.joined = [losses](const rpc::PeerIdentity& trainer, std::size_t all) {
    losses->trainer_joined(trainer.name, trainer.incarnation, all);
  };
  events.failed = [losses](const std::string& trainer, const std::string& why) {
    losses->trainer_failed(trainer, why);
  };
  if (checkpoints) {
    events.checkpoint = [checkpoints](const UpdateReport& update, SharedModel& model) {
      checkpoints->updated(update, model);
    };
  }
  return events;
}

/// A server from its start to its end. Its results are stored in `run`.
class ServerProcess {
 public:
  /// Needs options with a rank. It looks at its checkpoints before another process knows about it.
  ServerProcess(const ParameterServerOptions& options, const batchrpc::InterruptFlag& interrupts,
                ServerRun& run)
      : options_(options),
        interrupts_(interrupts),
        run_(run),
        part_(first_values(options)),
        losses_(make_losses(options, interrupts)) {
    run_.elements = part_.parameters_of_all;
    run_.message_bytes = static_cast<std::int64_t>(part_.values.nbytes());
    run_.gradients = gradient_settings(options);
    give_back_freed_memory();  // the module's memory, in pieces of many sizes
    memory_without_ = resident_bytes() - run_.message_bytes;
    record_ = make_record(options, part_);
    if (!options.checkpoint.empty()) {
      checkpoints_ = std::make_shared<Checkpoints>(options);
      try {
        own_checkpoints_.iterations = checkpoints_->restorable();
      } catch (const CheckpointError& error) {
        if (options.rank == 0) throw;
        own_checkpoints_.error = error.what();  // server 0 reports it
      }
    }
    const auto waiting = notice_of_waiting(options, server_name(0) + " at " + options.join);
    node_.emplace(node_options(options));
    if (options.launched) outlive_parent();  // it notices now when the first server is gone
  }

  void start_others(const std::vector<std::string>& arguments) {
    processes_.emplace(options_, arguments);
  }

  void agree_on_checkpoint() {
    if (!checkpoints_) return;
    run_.first_iteration =
        first_iteration(*node_, options_, own_checkpoints_, [this] { check_beginning(); });
    resumed_ = checkpoints_->restore(run_.first_iteration, part_.values.numel(), part_.parameters);
    if (!resumed_) return;
    run_.gradients = resumed_->history;
    if (options_.rank == 0) report_where_it_goes_on();
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

  /// Also called for a run that fails.
  void measure() {
    if (begun_) run_.work_seconds = seconds_between(*begun_, Clock::now());
    run_.memory_bytes = most_resident_bytes() - memory_without_;
    run_.iterations = record_->finish();
    losses_->end();
    run_.lost = losses_->trainers();
    run_.failed_trainers = losses_->failed_trainers();
    run_.failed_servers = lost_servers();
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
    if (finished < options_.iterations) throw std::runtime_error(why_unfinished(finished));
    if (processes_) run_.failed_servers = processes_->wait();
  }

 private:
  [[nodiscard]] std::vector<std::string> lost_servers() {
    std::vector<std::string> all;
    for (const auto& [name, why] : losses_->servers()) {
      std::string end;
      for (int index = 1; processes_ && index < options_.servers; ++index) {
        if (server_name(index) == name) end = processes_->end_of_server(index);
      }
      all.push_back(name + (end.empty() ? " is lost: " + why : " " + end));
    }
    return all;
  }

  [[nodiscard]] std::string why_unfinished(std::int64_t finished) const {
    const std::string after =
        ", after " + std::to_string(finished) + " of " + counted(options_.iterations, "iteration");
    if (!run_.failed_servers.empty()) return run_.failed_servers.front() + after;
    if (run_.failed_trainers.empty()) return "every trainer is lost" + after;
    return "every trainer is lost or has failed" + after +
           "; the last failure: " + run_.failed_trainers.back();
  }

  // If nothing is left to do, trainers still join, and end with success.
  void report_where_it_goes_on() const {
    const std::string had = counted(run_.first_iteration, "iteration");
    if (run_.first_iteration < options_.iterations) {
      std::cout << "Continuing from the checkpoints after " << had << std::endl;
    } else {
      say("nothing is left to do: the checkpoints in " + options_.checkpoint + " are from after " +
          had + ", and --iterations, which includes these, is " +
          std::to_string(options_.iterations));
    }
  }

  void check_beginning() {
    interrupts_.check();
    if (processes_) processes_->check();
  }

  void begin() {
    server_ = std::make_shared<ParameterServer>(
        server_options(options_, run_.first_iteration), std::move(part_.values), part_.parameters,
        SgdOptions{.learning_rate = options_.learning_rate, .momentum = options_.momentum},
        server_events(record_, checkpoints_, losses_));
    if (resumed_) server_->model().restore(resumed_->values, resumed_->velocity);
    resumed_.reset();
    watch_peers(*node_, server_, losses_, options_);
    expose(*node_, server_);
  }

  const ParameterServerOptions options_;
  const batchrpc::InterruptFlag& interrupts_;
  ServerRun& run_;
  Part part_;
  const std::shared_ptr<Losses> losses_;
  std::int64_t memory_without_ = 0;
  std::shared_ptr<RunRecord> record_;
  std::shared_ptr<Checkpoints> checkpoints_;  // null without a folder
  OwnCheckpoints own_checkpoints_;
  std::optional<Checkpoint> resumed_;
  std::optional<Clock::time_point> begun_;   // when the first iteration began
  std::shared_ptr<ParameterServer> server_;  // outlives the node
  std::optional<rpc::Node> node_;
  std::optional<OtherProcesses> processes_;
};

}  // namespace

void run_server(ParameterServerOptions options, const std::vector<std::string>& arguments,
                Clock::time_point started, const batchrpc::InterruptFlag& interrupts,
                ServerRun& run) {
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
