#include "parameter_server/checkpoints.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/counted.hpp"
#include "common/notice.hpp"

namespace batchrpc_examples {
namespace {

constexpr std::size_t kKept = 2;

}  // namespace

std::int64_t newest_common(const Restorable& restorable) {
  const auto has_none = [](const auto& server) { return server.second.empty(); };
  if (std::all_of(restorable.begin(), restorable.end(), has_none)) return 0;
  std::vector<std::int64_t> common = restorable.begin()->second;
  std::ostringstream text;
  for (const auto& [server, iterations] : restorable) {
    text << (text.tellp() > 0 ? ", " : "") << server << " has";
    for (const std::int64_t each : iterations)
      text << ' ' << each;
    if (iterations.empty()) text << " none";
    std::erase_if(common, [&its = iterations](std::int64_t each) {
      return std::find(its.begin(), its.end(), each) == its.end();
    });
  }
  if (common.empty()) {
    throw CheckpointError(
        "the servers' checkpoints have no iteration in common: " + text.str() +
        "; restore the missing ones, or, to start again, remove all of them or use another folder");
  }
  return *std::max_element(common.begin(), common.end());
}

Checkpoints::Checkpoints(const ParameterServerOptions& options)
    : files_(options.checkpoint, server_name(options.rank.value())),
      server_(server_name(options.rank.value())),
      settings_(model_settings(options)),
      servers_(options.servers),
      every_(options.checkpoint_every),
      iterations_(options.iterations),
      trainers_(options.trainers),
      history_(gradient_settings(options)) {}

std::vector<std::int64_t> Checkpoints::restorable() const {
  const std::vector<std::int64_t> all = files_.numbers();
  std::vector<std::int64_t> whole;
  for (const std::int64_t each : all) {
    try {
      (void)read(each);
      whole.push_back(each);
    } catch (const DamagedCheckpoint& error) {
      say(std::string(error.what()) + "; it is ignored");
    }
  }
  if (whole.empty() && !all.empty()) {
    throw CheckpointError("all checkpoints of " + server_ + " in " + files_.folder() +
                          " are damaged: to start again, remove them or give another folder");
  }
  return whole;
}

Checkpoint Checkpoints::read(std::int64_t iterations) const {
  Checkpoint checkpoint = read_checkpoint(files_.path(iterations));
  if (checkpoint.servers != servers_) {
    throw CheckpointError(files_.path(iterations) + ": belongs to a training with --servers " +
                          std::to_string(checkpoint.servers) + ", but this one has --servers " +
                          std::to_string(servers_) +
                          ": use the same number of servers, or use another folder to start again");
  }
  if (checkpoint.settings != settings_) {
    throw CheckpointError(files_.path(iterations) + ": belongs to another training: " +
                          checkpoint.settings + "; this one is " + settings_);
  }
  return checkpoint;
}

std::optional<Checkpoint> Checkpoints::restore(std::int64_t iterations, std::int64_t elements,
                                               std::int64_t parameters) {
  std::optional<Checkpoint> checkpoint;
  if (iterations > 0) {
    checkpoint = read(iterations);
    const at::Tensor& velocity = checkpoint->velocity;
    if (checkpoint->values.numel() != elements ||
        (velocity.defined() && velocity.numel() != parameters)) {
      throw CheckpointError(files_.path(iterations) + ": belongs to a model of another size");
    }
  }
  forget_after(iterations);
  const std::lock_guard lock(mutex_);
  if (checkpoint && checkpoint->history != history_) history_ = kChangingTrainers;
  last_ = iterations;
  return checkpoint;
}

// Newer checkpoints would not fit those that the servers write from now on.
void Checkpoints::forget_after(std::int64_t iterations) const {
  for (const std::int64_t each : files_.numbers()) {
    if (each <= iterations) continue;
    say(files_.path(each) + " was removed, because not all servers have it");
    std::filesystem::remove(files_.path(each));
  }
  files_.remove_unfinished();
}

void Checkpoints::updated(const UpdateReport& update, const SharedModel& model) {
  const std::lock_guard lock(mutex_);
  if (update.gradients != trainers_) history_ = kChangingTrainers;
  if (update.finished / every_ != last_ / every_ || update.finished == iterations_) {
    write(update.finished, model, update.finished == iterations_);
  }
}

void Checkpoints::finish(std::int64_t iterations, const SharedModel& model) {
  const std::lock_guard lock(mutex_);
  if (iterations > last_) write(iterations, model, true);
}

void Checkpoints::write(std::int64_t iterations, const SharedModel& model, bool is_last) {
  last_ = iterations;
  try {
    model.use([&](const at::Tensor& values, const at::Tensor& velocity) {
      write_checkpoint(files_.path(iterations), {.iterations = iterations,
                                                 .servers = servers_,
                                                 .settings = settings_,
                                                 .history = history_,
                                                 .values = values,
                                                 .velocity = velocity});
    });
    error_.clear();
    files_.keep_last(kKept);
  } catch (const std::exception& error) {
    error_ = "no checkpoint after " + counted(iterations, "iteration") + ": " + error.what();
    if (!is_last) say(error_ + "; the training continues");
  }
}

std::string Checkpoints::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace batchrpc_examples
