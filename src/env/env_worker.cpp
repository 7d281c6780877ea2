#include "batchrpc/env/env_worker.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "env/env_buffer.hpp"
#include "env/episodes.hpp"
#include "env/step_messages.hpp"

namespace batchrpc {

WorkerPolicy::~WorkerPolicy() = default;

namespace {
constexpr std::uint32_t kMostBuffers = 16;
}

class EnvWorker::State {
 public:
  State(EnvGroupFactory make, const EnvWorkerOptions& options)
      : make_(std::move(make)), max_envs_(options.max_envs) {
    parts_.lanes = options.lanes.get();
    parts_.policy = options.policy;
  }

  env::OpenReply open(const env::OpenRequest& request) {
    require_possible(request);
    const env::During making(*parts_.activity);  // so that the lanes outlive it
    std::vector<std::shared_ptr<env::EnvBuffer>> buffers;
    env::OpenReply reply;
    for (std::uint32_t b = 0; b < request.buffers; ++b)
      buffers.push_back(make_buffer(b, request, reply.spec));
    reply.extras =
        parts_.policy == nullptr ? 0 : static_cast<std::uint32_t>(parts_.policy->extras());
    const std::lock_guard lock(mutex_);
    buffers_.swap(buffers);
    reply.session = ++session_;
    return reply;
  }

  std::shared_ptr<env::EnvBuffer> buffer(std::uint64_t session, std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (session != session_) {
      throw InvalidArgument(
          "these environments are gone: the worker has been opened anew, by this driver or "
          "another");
    }
    if (index >= buffers_.size()) {
      throw InvalidArgument("there is no buffer " + std::to_string(index) + ", but " +
                            std::to_string(buffers_.size()));
    }
    return buffers_[index];
  }

  void update_policy(Bytes weights, std::uint64_t version) {
    if (parts_.policy == nullptr) {
      throw InvalidArgument(
          "weights need a policy, and this worker has none: EnvWorkerOptions::policy");
    }
    parts_.policy->update(std::move(weights), version);
  }

  [[nodiscard]] Future<void> close() { return parts_.activity->close(); }

 private:
  void require_possible(const env::OpenRequest& request) const {
    if (request.buffers == 0 || request.buffers > kMostBuffers) {
      throw InvalidArgument(std::to_string(request.buffers) + " buffers; allowed are 1 to " +
                            std::to_string(kMostBuffers));
    }
    const std::size_t all = std::size_t{request.buffers} * request.envs;
    if (request.envs == 0 || all > max_envs_) {
      throw InvalidArgument(std::to_string(request.buffers) + " × " + std::to_string(request.envs) +
                            " environments; allowed are 1 to " + std::to_string(max_envs_) +
                            " (EnvWorkerOptions::max_envs)");
    }
    const std::size_t lanes = parts_.lanes->count();
    if (request.envs % lanes != 0) {
      throw InvalidArgument(std::to_string(request.envs) + " environments do not divide among " +
                            std::to_string(lanes) +
                            " lanes: ask for a multiple, or give the worker other lanes");
    }
    if (request.autoreset != Autoreset::next_step && request.autoreset != Autoreset::same_step) {
      throw InvalidArgument("an autoreset that is not known here: " +
                            std::to_string(static_cast<int>(request.autoreset)));
    }
  }

  // `spec` is that of the buffers before, if there were any.
  std::shared_ptr<env::EnvBuffer> make_buffer(std::size_t index, const env::OpenRequest& request,
                                              EnvSpec& spec) {
    const std::size_t lanes = parts_.lanes->count();
    std::vector<std::unique_ptr<env::Episodes>> groups;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::unique_ptr<EnvGroup> group = make_(request.envs / lanes);
      if (group == nullptr || group->size() != request.envs / lanes) {
        throw InvalidArgument("the worker's factory has not made a group of " +
                              std::to_string(request.envs / lanes));
      }
      require_usable(group->spec());
      if (spec == EnvSpec{}) spec = group->spec();
      if (group->spec() != spec) {
        throw InvalidArgument("the worker's environments differ: one has " + to_string(spec) +
                              ", another " + to_string(group->spec()));
      }
      groups.push_back(std::make_unique<env::Episodes>(std::move(group), request.autoreset));
    }
    return std::make_shared<env::EnvBuffer>(index, std::move(groups), parts_);
  }

  const EnvGroupFactory make_;
  const std::size_t max_envs_;
  env::WorkerParts parts_;
  std::mutex mutex_;
  std::uint64_t session_ = 0;
  std::vector<std::shared_ptr<env::EnvBuffer>> buffers_;
};

EnvWorker::EnvWorker(const Node& node, EnvGroupFactory make, EnvWorkerOptions options)
    : node_(node),
      service_(options.service),
      lanes_(options.lanes != nullptr ? options.lanes : thread_lanes(1)) {
  if (make == nullptr) throw InvalidArgument("EnvWorker: there is no factory");
  if (options.service.empty()) throw InvalidArgument("EnvWorker: the service has no name");
  if (lanes_->count() == 0) throw InvalidArgument("EnvWorker: there must be a lane at least");
  options.lanes = lanes_;
  state_ = std::make_shared<State>(std::move(make), options);
  // Open makes environments, and so may take its time; it is the last that a driver can find.
  const auto state = state_;
  node.expose(
      env::step_name(service_),
      [state](std::uint64_t session, std::uint32_t buffer, std::uint32_t steps, Bytes actions) {
        return state->buffer(session, buffer)->step(steps, std::move(actions));
      },
      {.short_handler = true});
  node.expose(
      env::reset_name(service_),
      [state](std::uint64_t session, std::uint32_t buffer, std::optional<std::uint64_t> seed) {
        return state->buffer(session, buffer)->reset(seed);
      },
      {.short_handler = true});
  node.expose(env::policy_name(service_), [state](Bytes weights, std::uint64_t version) {
    state->update_policy(std::move(weights), version);
  });
  node.expose(env::open_name(service_),
              [state](const env::OpenRequest& request) { return state->open(request); });
}

EnvWorker::~EnvWorker() {
  for (const auto& name : {env::open_name(service_), env::step_name(service_),
                           env::reset_name(service_), env::policy_name(service_)})
    node_.unexpose(name);
  state_->close().wait();
}

}  // namespace batchrpc
