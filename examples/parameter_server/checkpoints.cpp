#include "parameter_server/checkpoints.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "common/counted.hpp"
#include "parameter_server/notice.hpp"

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
    throw CheckpointError("the servers' checkpoints have no iteration in common: " + text.str() +
                          "; put back what is missing, or to begin anew remove them all, or name "
                          "another folder");
  }
  return *std::max_element(common.begin(), common.end());
}

Checkpoints::Checkpoints(const ParameterServerOptions& options)
    : folder_(options.checkpoint),
      server_(server_name(options.rank.value())),
      settings_(model_settings(options)),
      servers_(options.servers),
      every_(options.checkpoint_every),
      iterations_(options.iterations),
      trainers_(options.trainers),
      history_(gradient_settings(options)) {}

std::string Checkpoints::path(std::int64_t iterations) const {
  return folder_ + "/" + file(iterations);
}

std::string Checkpoints::file(std::int64_t iterations) const {
  return server_ + "." + std::to_string(iterations) + ".checkpoint";
}

std::vector<std::int64_t> Checkpoints::written() const {
  std::vector<std::int64_t> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    std::int64_t iterations = 0;
    const std::size_t digits = std::min(name.size(), server_.size() + 1);
    std::from_chars(name.data() + digits, name.data() + name.size(), iterations);
    if (iterations > 0 && entry.path().filename() == file(iterations)) all.push_back(iterations);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::int64_t> Checkpoints::restorable() const {
  const std::vector<std::int64_t> all = written();
  std::vector<std::int64_t> whole;
  for (const std::int64_t each : all) {
    try {
      (void)read(each);
      whole.push_back(each);
    } catch (const DamagedCheckpoint& error) {
      say(std::string(error.what()) + "; it is passed over");
    }
  }
  if (whole.empty() && !all.empty()) {
    throw CheckpointError("all checkpoints of " + server_ + " in " + folder_ +
                          " are damaged: to begin anew, remove them, or name another folder");
  }
  return whole;
}

Checkpoint Checkpoints::read(std::int64_t iterations) const {
  Checkpoint checkpoint = read_checkpoint(path(iterations));
  if (checkpoint.servers != servers_) {
    throw CheckpointError(path(iterations) + ": is of a training with --servers " +
                          std::to_string(checkpoint.servers) + ", and this one is with --servers " +
                          std::to_string(servers_) +
                          ": go on with as many servers as there were, "
                          "or name another folder to begin anew");
  }
  if (checkpoint.settings != settings_) {
    throw CheckpointError(path(iterations) + ": is of another training: " + checkpoint.settings +
                          "; this one is " + settings_);
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
      throw CheckpointError(path(iterations) + ": is of a model of another size");
    }
  }
  forget_after(iterations);
  const std::lock_guard lock(mutex_);
  if (checkpoint && checkpoint->history != history_) history_ = kChangingTrainers;
  last_ = iterations;
  return checkpoint;
}

// What is newer would be of another training than what the servers write from now on.
void Checkpoints::forget_after(std::int64_t iterations) const {
  for (const std::int64_t each : written()) {
    if (each <= iterations) continue;
    say(path(each) + " is newer than what all servers have, and removed");
    std::filesystem::remove(path(each));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && name.starts_with(server_ + ".") && name.ends_with(".new")) {
      std::filesystem::remove(entry.path());
    }
  }
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
      write_checkpoint(path(iterations), {.iterations = iterations,
                                          .servers = servers_,
                                          .settings = settings_,
                                          .history = history_,
                                          .values = values,
                                          .velocity = velocity});
    });
    error_.clear();
    const std::vector<std::int64_t> all = written();
    for (std::size_t i = 0; i + kKept < all.size(); ++i)
      std::filesystem::remove(path(all[i]));
  } catch (const std::exception& error) {
    error_ = "no checkpoint after " + counted(iterations, "iteration") + ": " + error.what();
    if (!is_last) say(error_ + "; the training goes on");
  }
}

std::string Checkpoints::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace batchrpc_examples
