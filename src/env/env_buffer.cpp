#include "env/env_buffer.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/promise.hpp"
#include "env/action_check.hpp"
#include "env/program_code.hpp"

namespace batchrpc::env {

// The right to use the buffer's environments; keeps the worker from ending.
class EnvBuffer::Turn {
 public:
  // Throws InvalidArgument while another Turn exists, and ShutDown when the worker is ending.
  explicit Turn(std::shared_ptr<EnvBuffer> buffer) : activity_(buffer->parts_.activity) {
    activity_->begin();
    if (buffer->busy_.exchange(true)) {
      activity_->end();
      throw InvalidArgument(
          "these environments are being stepped; wait for that step to finish first");
    }
    buffer_ = std::move(buffer);
  }
  Turn(Turn&&) = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (activity_ == nullptr) return;
    let_go();
    activity_->end();
  }
  // Lets the next turn begin, or the environments end.
  void let_go() noexcept {
    if (buffer_ == nullptr) return;
    buffer_->busy_ = false;
    buffer_ = nullptr;
  }

  EnvBuffer* operator->() const noexcept { return buffer_.get(); }
  EnvBuffer& operator*() const noexcept { return *buffer_; }

 private:
  std::shared_ptr<Activity> activity_;
  std::shared_ptr<EnvBuffer> buffer_;
};

// A reset, or the steps of one message. Each lane takes its group through all steps. If a policy
// chooses the actions, the lanes take one step at a time, and the policy acts in between.
class EnvBuffer::Round final : public LaneTask, public std::enable_shared_from_this<Round> {
 public:
  enum class Kind { reset, given, rollout };

  Round(Turn turn, Kind kind, std::size_t steps)
      : buffer_(std::move(turn)),
        kind_(kind),
        steps_(steps),
        ends_(buffer_->groups_.size()),
        errors_(buffer_->groups_.size()) {
    const std::size_t rows = steps * buffer_->envs_;
    reply_.observations = buffer_->parts_.memory->allocate(rows * buffer_->observation_bytes_);
    reply_.rewards.resize(rows);
    reply_.flags.resize(rows);
    if (kind_ != Kind::rollout) return;
    reply_.actions = buffer_->parts_.memory->allocate(rows * buffer_->action_bytes_);
    reply_.extras.resize(rows * buffer_->parts_.policy->extras());
    reply_.versions.resize(steps);
  }

  std::optional<std::uint64_t> seed{};
  Bytes actions{};

  [[nodiscard]] Future<StepReply> future() { return promise_.get_future(); }

  [[nodiscard]] std::size_t steps() const noexcept override {
    if (kind_ == Kind::rollout) return acted_ ? 1 : 0;
    return kind_ == Kind::given ? steps_ : 1;
  }
  void run(std::size_t lane) noexcept override {
    try {
      run_lane(lane);
    } catch (...) {
      errors_[lane] = std::current_exception();
    }
  }

  void done() noexcept override {
    const auto failed = std::ranges::find_if(errors_, [](const auto& error) { return !!error; });
    if (failed != errors_.end()) return finish(*failed);
    if (kind_ != Kind::rollout) return finish(nullptr);
    if (acted_) ++step_;
    if (step_ == steps_) return finish(nullptr);
    try {
      require_awaited();
      act();
      buffer_->parts_.lanes->run(shared_from_this());
    } catch (...) {
      finish(std::current_exception());
    }
  }

 private:
  void run_lane(std::size_t lane) {
    Episodes& group = *buffer_->groups_[lane];
    const std::size_t first = lane * buffer_->group_size_;
    switch (kind_) {
      case Kind::reset:
        return run_program_code([&] {
          group.begin(seed ? std::optional(*seed + first) : std::nullopt, rows(0, first));
        });
      case Kind::given:
        for (std::size_t s = 0; s < steps_; ++s) {
          require_awaited();
          step(group, s, first, lane);
        }
        return;
      case Kind::rollout:
        if (acted_) step(group, step_, first, lane);
        return;
    }
  }

  void require_awaited() const {
    if (buffer_->parts_.activity->closed()) throw ShutDown("the worker's environments are closing");
    if (buffer_->ended_)
      throw InvalidArgument("these environments were closed while they were being stepped");
  }

  void step(Episodes& group, std::size_t s, std::size_t first, std::size_t lane) {
    const std::size_t bytes = buffer_->action_bytes_;
    const std::span<const std::byte> chosen =
        (kind_ == Kind::given ? actions : reply_.actions).span();
    run_program_code([&] {
      group.step(chosen.subspan((s * buffer_->envs_ + first) * bytes, group.size() * bytes),
                 rows(s, first), ends_[lane]);
    });
  }

  [[nodiscard]] EpisodeRows rows(std::size_t s, std::size_t first) {
    const std::size_t row = s * buffer_->envs_ + first;
    const std::size_t count = buffer_->group_size_;
    const std::size_t bytes = buffer_->observation_bytes_;
    return {.observations = {reply_.observations.mutable_data() + row * bytes, count * bytes},
            .rewards = std::span(reply_.rewards).subspan(row, count),
            .flags = std::span(reply_.flags).subspan(row, count),
            .first_row = static_cast<std::uint32_t>(row)};
  }

  void act() {
    const std::size_t envs = buffer_->envs_;
    const std::size_t bytes = envs * buffer_->observation_bytes_;
    const std::span<const std::byte> before =
        step_ == 0 ? buffer_->last_.span()
                   : reply_.observations.span().subspan((step_ - 1) * bytes, bytes);
    const std::size_t chosen_bytes = envs * buffer_->action_bytes_;
    const std::span<std::byte> chosen(reply_.actions.mutable_data() + step_ * chosen_bytes,
                                      chosen_bytes);
    const std::size_t extras = envs * buffer_->parts_.policy->extras();
    const std::span<float> beside = std::span(reply_.extras).subspan(step_ * extras, extras);
    reply_.versions[step_] = run_program_code(
        [&] { return buffer_->parts_.policy->act(buffer_->index_, envs, before, chosen, beside); });
    try {
      buffer_->require_actions(chosen);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument("the worker's policy failed in step " + std::to_string(step_ + 1) +
                            " of " + std::to_string(steps_) + ": " + error.what());
    }
    acted_ = true;
  }

  void finish(std::exception_ptr error) noexcept {
    Turn turn = std::move(buffer_);
    if (error == nullptr) {
      try {
        join_ends(*turn);
        keep_last(*turn);
      } catch (...) {
        error = std::current_exception();
      }
    }
    turn->begun_ = error == nullptr;
    turn.let_go();
    if (error == nullptr) {
      promise_.set_value(std::move(reply_));
    } else {
      promise_.set_error(std::move(error));
    }
  }

  // Keeps the last observations. After several steps it copies them, to free the whole answer.
  void keep_last(EnvBuffer& buffer) const {
    if (buffer.parts_.policy == nullptr) return;
    const std::size_t bytes = buffer.envs_ * buffer.observation_bytes_;
    const Bytes last(reply_.observations.owner(),
                     reply_.observations.span().subspan((steps_ - 1) * bytes, bytes));
    buffer.last_ = steps_ == 1 ? last : Bytes::copy(last.span());
  }

  // Joins the lanes' results in the order of the rows.
  void join_ends(const EnvBuffer& buffer) {
    const std::size_t bytes = buffer.observation_bytes_;
    struct Final {
      std::uint32_t row;
      const std::byte* observation;
    };
    std::vector<Final> finals;
    for (const EpisodeEnds& ends : ends_) {
      reply_.episodes.insert(reply_.episodes.end(), ends.episodes.begin(), ends.episodes.end());
      for (std::size_t i = 0; i < ends.final_rows.size(); ++i)
        finals.push_back({ends.final_rows[i], ends.final_observations.data() + i * bytes});
    }
    std::ranges::sort(reply_.episodes, {}, &EpisodeEnd::row);
    if (finals.empty()) return;
    std::ranges::sort(finals, {}, &Final::row);
    reply_.final_observations = buffer.parts_.memory->allocate(finals.size() * bytes);
    std::byte* out = reply_.final_observations.mutable_data();
    for (const Final& final : finals) {
      reply_.final_rows.push_back(final.row);
      out = std::copy_n(final.observation, bytes, out);
    }
  }

  Turn buffer_;
  const Kind kind_;
  const std::size_t steps_;
  std::size_t step_ = 0;  // the current step of a rollout
  bool acted_ = false;    // a rollout begins with a turn of the lanes in which nothing is done
  std::vector<EpisodeEnds> ends_;           // one for each lane
  std::vector<std::exception_ptr> errors_;  // one for each lane
  StepReply reply_;
  Promise<StepReply> promise_;
};

EnvBuffer::EnvBuffer(std::size_t index, std::vector<std::unique_ptr<Episodes>> groups,
                     WorkerParts parts)
    : index_(index),
      groups_(std::move(groups)),
      parts_(std::move(parts)),
      spec_(groups_.front()->spec()),
      group_size_(groups_.front()->size()),
      envs_(groups_.size() * group_size_),
      observation_bytes_(spec_.observation.bytes()),
      action_bytes_(spec_.action.bytes()),
      most_steps_(most_steps({.envs = envs_,
                              .observation_bytes = observation_bytes_,
                              .action_bytes = action_bytes_,
                              .extras = parts_.policy == nullptr ? 0 : parts_.policy->extras()},
                             parts_.limits)) {
  if (most_steps_ > 0) return;
  throw InvalidArgument(std::to_string(envs_) + " environments (" + to_string(spec_) +
                        ") are more than one message can carry");
}

Future<StepReply> EnvBuffer::reset(std::optional<std::uint64_t> seed) {
  try {
    auto round = std::make_shared<Round>(Turn(shared_from_this()), Round::Kind::reset, 1);
    round->seed = seed;
    return start(std::move(round));
  } catch (...) {
    return make_failed_future<StepReply>(std::current_exception());
  }
}

Future<StepReply> EnvBuffer::step(std::uint32_t steps, Bytes actions) {
  try {
    Turn turn(shared_from_this());
    require_begun();
    require_step(steps, actions);
    const auto kind = actions.empty() ? Round::Kind::rollout : Round::Kind::given;
    auto round = std::make_shared<Round>(std::move(turn), kind, steps);
    round->actions = std::move(actions);
    return start(std::move(round));
  } catch (...) {
    return make_failed_future<StepReply>(std::current_exception());
  }
}

Future<StepReply> EnvBuffer::start(std::shared_ptr<Round> round) {
  const During starting(*parts_.activity);  // the round may have ended before run() returns
  Future<StepReply> reply = round->future();
  parts_.lanes->run(std::move(round));
  return reply;
}

void EnvBuffer::require_begun() const {
  if (begun_) return;
  throw InvalidArgument(
      "these environments must be reset first: they never were, or one of them has thrown");
}

void EnvBuffer::require_step(std::uint32_t steps, const Bytes& actions) const {
  if (steps == 0 || steps > most_steps_) {
    throw InvalidArgument(std::to_string(steps) +
                          " steps were requested, but one message can carry 1 to " +
                          std::to_string(most_steps_));
  }
  if (actions.empty()) {
    if (parts_.policy == nullptr) {
      throw InvalidArgument(
          "a rollout needs a policy, but this worker has none; set EnvWorkerOptions::policy");
    }
    return;
  }
  const std::size_t wanted = std::size_t{steps} * envs_ * action_bytes_;
  if (actions.size() != wanted) {
    throw InvalidArgument("the actions for " + std::to_string(steps) + " steps of " +
                          std::to_string(envs_) + " environments must have " +
                          std::to_string(wanted) + " bytes, but have " +
                          std::to_string(actions.size()));
  }
  require_actions(actions.span());
}

// Checks the actions, except those of environments that the next step resets.
void EnvBuffer::require_actions(std::span<const std::byte> actions) const {
  require_allowed(spec_, actions, [this](std::size_t i) {
    return i < envs_ && groups_[i / group_size_]->rests(i % group_size_);
  });
}

}  // namespace batchrpc::env
