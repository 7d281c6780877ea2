#include "batchrpc/env/env_worker.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/random_odd.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "env/env_buffer.hpp"
#include "env/episodes.hpp"
#include "env/program_code.hpp"
#include "env/step_messages.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

WorkerPolicy::~WorkerPolicy() = default;

// The state for one driver at a time: its session, environments and weights.
class EnvWorker::State {
 public:
  State(const Node& node, EnvGroupFactory make, const EnvWorkerOptions& options)
      : make_(std::move(make)),
        max_envs_(options.max_envs),
        incarnation_(detail::NodeAccess::core(node)->incarnation()),
        session_{.worker = random_odd()} {
    parts_.lanes = options.lanes.get();
    parts_.policy = options.policy;
    parts_.memory = detail::NodeAccess::core(node)->payload_memory();
    parts_.limits = env::limits_of(detail::NodeAccess::core(node)->options());
  }

  env::OpenReply open(const env::OpenRequest& request) {
    require_possible(request);
    const env::During making(*parts_.activity);  // so that the lanes outlive it
    const Opening opening(*this);
    std::vector<std::shared_ptr<env::EnvBuffer>> buffers;
    env::OpenReply reply{.incarnation = incarnation_};
    for (std::uint32_t b = 0; b < request.buffers; ++b)
      buffers.push_back(make_buffer(b, request, reply.spec));
    if (parts_.policy != nullptr) {
      reply.extras = static_cast<std::uint32_t>(parts_.policy->extras());
    }
    const std::lock_guard lock(mutex_);
    buffers_ = std::move(buffers);
    reply.session = session_;
    return reply;
  }

  std::shared_ptr<env::EnvBuffer> buffer(const env::SessionId& session, std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    require_current(session);
    if (index >= buffers_.size()) {
      throw InvalidArgument("there is no buffer number " + std::to_string(index) +
                            ", since the worker has " + std::to_string(buffers_.size()));
    }
    return buffers_[index];
  }

  // Takes weights, one call at a time; ignores any that are older than the current ones.
  void update_policy(const env::SessionId& session, Bytes weights, std::uint64_t version) {
    if (parts_.policy == nullptr) {
      throw InvalidArgument(
          "weights need a policy, but this worker has none; set EnvWorkerOptions::policy");
    }
    {
      const std::lock_guard lock(mutex_);
      require_current(session);
      if (version < weights_version_) return;
    }
    env::run_program_code([&] { parts_.policy->update(std::move(weights), version); });
    const std::lock_guard lock(mutex_);
    if (session == session_) weights_version_ = version;
  }

  [[nodiscard]] Future<void> close() { return parts_.activity->close(); }

 private:
  // Makes one driver's environments at a time, after the previous ones have been destroyed. Throws
  // Overloaded.
  class Opening {
   public:
    explicit Opening(State& state) : state_(state) {
      std::vector<std::shared_ptr<env::EnvBuffer>> before;  // destroyed without the lock
      {
        const std::lock_guard lock(state_.mutex_);
        if (std::exchange(state_.opening_, true)) {
          throw Overloaded("the worker is already making environments");
        }
        before.swap(state_.buffers_);
        ++state_.session_.number;
        state_.weights_version_ = 0;
      }
      for (const auto& buffer : before) {
        buffer->end();
        state_.former_.push_back(buffer->presence());
      }
      before.clear();
      std::erase_if(state_.former_, [](const auto& presence) { return presence.expired(); });
      if (state_.former_.empty()) return;
      end();
      throw Overloaded("the worker's previous environments are still being stepped");
    }
    ~Opening() { end(); }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    void end() const noexcept {
      const std::lock_guard lock(state_.mutex_);
      state_.opening_ = false;
    }
    State& state_;
  };

  void require_current(const env::SessionId& session) const {
    if (session.worker != session_.worker) {
      throw NotFound("these environments are gone: the worker was restarted");
    }
    if (session.number != session_.number) {
      throw InvalidArgument(
          "these environments are gone: the worker was opened again, by this driver or another");
    }
  }

  void require_possible(const env::OpenRequest& request) const {
    if (request.buffers == 0 || request.buffers > WorkerPolicy::kMostBuffers) {
      throw InvalidArgument(std::to_string(request.buffers) +
                            " buffers were requested, but must be from 1 to " +
                            std::to_string(WorkerPolicy::kMostBuffers));
    }
    const std::size_t all = std::size_t{request.buffers} * request.envs;
    if (request.envs == 0 || all > max_envs_) {
      throw InvalidArgument(std::to_string(request.buffers) + " × " + std::to_string(request.envs) +
                            " environments were requested, but must be from 1 to " +
                            std::to_string(max_envs_) + " (EnvWorkerOptions::max_envs)");
    }
    const std::size_t lanes = parts_.lanes->count();
    if (request.envs % lanes != 0) {
      throw InvalidArgument(
          std::to_string(request.envs) + " environments cannot be divided evenly among " +
          std::to_string(lanes) +
          " lanes: request a multiple of that, or change EnvWorkerOptions::lanes");
    }
    if (request.autoreset != Autoreset::next_step && request.autoreset != Autoreset::same_step) {
      throw InvalidArgument("unknown autoreset mode: " +
                            std::to_string(static_cast<int>(request.autoreset)));
    }
  }

  // `spec` is the previous buffers' spec, if there are any.
  std::shared_ptr<env::EnvBuffer> make_buffer(std::size_t index, const env::OpenRequest& request,
                                              EnvSpec& spec) {
    const std::size_t lanes = parts_.lanes->count();
    std::vector<std::unique_ptr<env::Episodes>> groups;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      auto group = env::run_program_code([&] { return make_(request.envs / lanes); });
      if (group == nullptr || group->size() != request.envs / lanes) {
        throw InvalidArgument("the worker's factory did not return a group of " +
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
  const std::uint64_t incarnation_;
  env::WorkerParts parts_;
  std::vector<std::weak_ptr<const void>> former_;  // presences of old buffers; for Opening only

  std::mutex mutex_;  // guards the members below
  bool opening_ = false;
  env::SessionId session_;
  std::uint64_t weights_version_ = 0;  // of the current session
  std::vector<std::shared_ptr<env::EnvBuffer>> buffers_;
};

EnvWorker::EnvWorker(const Node& node, EnvGroupFactory make, EnvWorkerOptions options)
    : node_(node),
      service_(options.service),
      lanes_(options.lanes != nullptr ? options.lanes : thread_lanes(1)) {
  if (make == nullptr) throw InvalidArgument("EnvWorker: the factory is null");
  if (options.service.empty())
    throw InvalidArgument("EnvWorker: EnvWorkerOptions::service is empty");
  if (lanes_->count() == 0)
    throw InvalidArgument("EnvWorker: EnvWorkerOptions::lanes must have at least one lane");
  options.lanes = lanes_;
  state_ = std::make_shared<State>(node, std::move(make), options);
  const auto expose = [this](const std::string& name, auto function, ExposeOptions how) {
    node_.expose(name, std::move(function), std::move(how));
    exposed_.push_back(name);
  };
  // Making environments may take long, so `open` is exposed last: a driver that finds it finds all
  // functions.
  const auto state = state_;
  try {
    expose(env::step_name(service_),
           [state](const env::SessionId& session, std::uint32_t buffer, std::uint32_t steps,
                   Bytes actions) {
             return state->buffer(session, buffer)->step(steps, std::move(actions));
           },
           {.short_handler = true});
    expose(env::reset_name(service_),
           [state](const env::SessionId& session, std::uint32_t buffer,
                   std::optional<std::uint64_t> seed) {
             return state->buffer(session, buffer)->reset(seed);
           },
           {.short_handler = true});
    expose(env::policy_name(service_),
           [state](const env::SessionId& session, Bytes weights, std::uint64_t version) {
             state->update_policy(session, std::move(weights), version);
           },
           {.exclusive = std::make_shared<AsyncMutex>()});
    expose(env::open_name(service_),
           [state](const env::OpenRequest& request) { return state->open(request); }, {});
  } catch (...) {
    unexpose();
    throw;
  }
}

EnvWorker::~EnvWorker() {
  unexpose();
  state_->close().wait();
}

void EnvWorker::unexpose() noexcept {
  for (; !exposed_.empty(); exposed_.pop_back())
    node_.unexpose(exposed_.back());
}

}  // namespace batchrpc
