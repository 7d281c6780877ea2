#include "parameter_server/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/process.hpp"
#include "common/seconds_between.hpp"
#include "parameter_server/server_functions.hpp"
#include "parameter_server/trainer_model.hpp"
#include "parameter_server/waiting_notice.hpp"
#include "torch_settings/torch_settings.hpp"

namespace batchrpc_examples {

namespace rpc = batchrpc;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kServersHearWithin = std::chrono::seconds(1);
constexpr int kMostAttempts = 10;

/// All servers of a model, each with a part of it, used as one.
class Servers {
 public:
  Servers(const rpc::Node& node, const ParameterServerOptions& options) : mode_(options.mode) {
    for (int index = 0; index < options.servers; ++index) {
      const auto waiting = notice_of_waiting(options, server_name(index));
      node.wait_for_peer(server_name(index), kServersAreThereWithin).get();
      servers_.push_back(find_server(node, server_name(index)));
    }
  }

  /// Waits until the training includes this trainer.
  TrainingStart join() {
    // When a late trainer joins several servers, one may be an iteration ahead.
    for (int attempt = 1;; ++attempt) {
      const std::vector<TrainingStart> starts = join_each();
      require_mode(starts);
      const auto other = std::find_if(starts.begin(), starts.end(), [&](const auto& start) {
        return start.iteration != starts[0].iteration;
      });
      if (other == starts.end()) return divide(starts);
      if (attempt == kMostAttempts) {
        throw std::runtime_error(
            "the servers are not in the same iteration: " + std::to_string(starts[0].iteration) +
            " and " + std::to_string(other->iteration));
      }
      leave();
    }
  }

  void fetch_model(const at::Tensor& values) {
    std::vector<rpc::Future<void>> fetched;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      fetched.push_back(batchrpc_examples::fetch_model(servers_[i], values_[i].of(values)));
    }
    rpc::when_all(std::move(fetched)).get();
  }

  /// Sends the gradients and receives the new model.
  void update(const at::Tensor& gradients, const at::Tensor& values) {
    std::vector<rpc::Future<void>> updated;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      updated.push_back(update_and_fetch_model(servers_[i], mode_, gradients_[i].of(gradients),
                                               values_[i].of(values)));
    }
    rpc::when_all(std::move(updated)).get();
  }

  void report(const IterationReport& report) {
    servers_[0].notify<&ParameterServer::report>(report);
  }

  /// For --check: stores this trainer's final values.
  void keep_result(const at::Tensor& values) {
    servers_[0].call<&ParameterServer::keep_result>(values).get();
  }

  void leave() {
    std::vector<rpc::Future<void>> left;
    for (const auto& server : servers_)
      left.push_back(server.call<&ParameterServer::leave>());
    rpc::when_all(std::move(left)).get();
  }

  /// Reports to the remaining servers why this trainer ends.
  void fail(const std::string& why) const {
    std::vector<rpc::Future<void>> told;
    for (const auto& server : servers_)
      told.push_back(server.call<&ParameterServer::fail>(why));
    for (const auto& each : told)
      each.wait_for(kServersHearWithin);
  }

 private:
  std::vector<TrainingStart> join_each() const {
    std::vector<rpc::Future<TrainingStart>> joining;
    for (const auto& server : servers_)
      joining.push_back(server.call<&ParameterServer::join>());
    return rpc::when_all(std::move(joining)).get();
  }
  // Servers would wait for ever for a gradient that was sent for another mode.
  void require_mode(const std::vector<TrainingStart>& starts) const {
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (starts[i].mode == mode_) continue;
      throw std::runtime_error(server_name(static_cast<int>(i)) + " uses --mode " +
                               to_string(starts[i].mode) + ", but this trainer uses --mode " +
                               to_string(mode_));
    }
  }
  TrainingStart divide(const std::vector<TrainingStart>& starts) {
    TrainingStart all{.iteration = starts[0].iteration, .iterations = starts[0].iterations};
    for (const TrainingStart& start : starts) {
      gradients_.push_back({all.parameters, all.parameters + start.parameters});
      values_.push_back({all.elements, all.elements + start.elements});
      all.parameters += start.parameters;
      all.elements += start.elements;
    }
    return all;
  }

  const UpdateMode mode_;
  std::vector<rpc::RRef<ParameterServer>> servers_;
  std::vector<Shard> gradients_;  // the part of each server
  std::vector<Shard> values_;
};

void train(Servers& servers, TrainerModel* model, const ParameterServerOptions& options) {
  const TrainingStart start = servers.join();
  const at::Tensor values = model ? model->values() : at::empty({start.elements});
  const at::Tensor gradients = model ? model->gradients() : at::ones({start.parameters});
  if (values.numel() != start.elements || gradients.numel() != start.parameters) {
    throw std::runtime_error("this trainer's model has " + std::to_string(values.numel()) +
                             " values, but the servers' model has " +
                             std::to_string(start.elements) +
                             ": start all with the same --classes, --servers and --buffers");
  }
  servers.fetch_model(values);
  for (std::int64_t iteration = start.iteration; iteration < start.iterations; ++iteration) {
    IterationReport report{.iteration = iteration};
    const auto begin = Clock::now();
    if (model) {
      model->received();
      report.loss = model->compute_gradients(options.trainer_index(), iteration);
    }
    const auto computed = Clock::now();
    servers.update(gradients, values);
    const auto end = Clock::now();
    report.compute_seconds = seconds_between(begin, computed);
    report.wait_seconds = seconds_between(computed, end);
    report.seconds = seconds_between(begin, end);
    servers.report(report);
  }
  if (options.check && options.trainer_index() == 0) servers.keep_result(values);
  servers.leave();
}

rpc::Node join_servers(const ParameterServerOptions& options) {
  const auto waiting = notice_of_waiting(options, server_name(0) + " at " + options.join);
  rpc::Node node(node_options(options));
  if (options.launched) outlive_parent();  // it notices now when the server is gone
  return node;
}

bool is_server_gone(const std::exception& error) {
  const auto* const known = dynamic_cast<const rpc::Error*>(&error);
  return known != nullptr &&
         (known->code() == rpc::ErrorCode::peer_lost || known->code() == rpc::ErrorCode::not_sent ||
          known->code() == rpc::ErrorCode::owner_lost);
}

void train(const rpc::Node& node, const ParameterServerOptions& options) {
  std::unique_ptr<TrainerModel> model;
  if (!options.synthetic) model = std::make_unique<TrainerModel>(options);
  Servers servers(node, options);
  try {
    train(servers, model.get(), options);
  } catch (const std::exception& error) {
    // The other servers notice themselves that a server is gone.
    if (!is_server_gone(error)) servers.fail(error.what());
    throw;
  }
}

}  // namespace

void run_trainer(const ParameterServerOptions& options) {
  // Ctrl-C reaches all processes of a terminal. A trainer that the server started leaves it to the
  // server.
  if (options.launched) std::signal(SIGINT, SIG_IGN);
  use_one_torch_thread();
  const std::string name = trainer_name(options.trainer_index());
  try {
    const rpc::Node node = join_servers(options);
    train(node, options);
  } catch (const std::exception& error) {
    throw std::runtime_error(name +
                             (is_server_gone(error) ? " ends because its server is gone: " : ": ") +
                             error.what());
  }
}

}  // namespace batchrpc_examples
