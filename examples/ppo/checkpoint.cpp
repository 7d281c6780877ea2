#include "ppo/checkpoint.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "flat_parameters/checked_tensor.hpp"

namespace batchrpc_examples::ppo {
namespace {

constexpr char kMagic[8] = {'b', 'r', 'p', 'c', 'p', 'p', 'o', '1'};

struct Header {
  char magic[8]{};
  std::int64_t version = 0;
  std::int64_t parameters = 0;
  std::int64_t settings_size = 0;  // in bytes, like the other sizes
  std::int64_t state_size = 0;
  std::int64_t sampler_size = 0;
};

// Checks the sizes in the header before anything is allocated.
void require_whole(const CheckedFile& file, const Header& header) {
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    file.damaged("is not a checkpoint of this program");
  }
  std::int64_t left =
      file.size() - static_cast<std::int64_t>(sizeof header + sizeof(std::uint64_t));
  if (header.version < 1 || header.parameters < 0) {
    file.damaged("is damaged: its header is invalid");
  }
  if (header.parameters > left) file.damaged("is cut off");
  const std::int64_t tensor = header.parameters * std::int64_t{sizeof(float)};
  for (const std::int64_t size :
       {header.settings_size, header.state_size, header.sampler_size, tensor, tensor, tensor}) {
    if (size < 0 || size > left) file.damaged("is cut off");
    left -= size;
  }
  if (left > 0) file.damaged("is longer than its header states");
}

// The differences between two lists of settings, "a 1, b 2, …".
std::string what_differs(const std::string& its, const std::string& ours) {
  const auto words = [](const std::string& list) {
    std::vector<std::string> all;
    std::size_t first = 0;
    while (first <= list.size()) {
      const std::size_t end = std::min(list.find(", ", first), list.size());
      all.push_back(list.substr(first, end - first));
      first = end + 2;
    }
    return all;
  };
  const std::vector<std::string> theirs = words(its);
  const std::vector<std::string> mine = words(ours);
  if (theirs.size() != mine.size()) return its + ", and this one with " + ours;
  std::string text;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (theirs[i] != mine[i]) {
      text += (text.empty() ? "" : ", ") + theirs[i] + " instead of " + mine[i];
    }
  }
  return text;
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const auto size_of = [](const std::string& text) {
    return static_cast<std::int64_t>(text.size());
  };
  Header header{.version = checkpoint.version,
                .parameters = checkpoint.weights.numel(),
                .settings_size = size_of(checkpoint.settings),
                .state_size = size_of(checkpoint.state),
                .sampler_size = size_of(checkpoint.sampler)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  replace_file(path, [&](CheckedFile& file) {
    file.write(&header, sizeof header);
    for (const std::string* text : {&checkpoint.settings, &checkpoint.state, &checkpoint.sampler})
      file.write_text(*text);
    for (const at::Tensor* tensor : {&checkpoint.weights, &checkpoint.mean, &checkpoint.square})
      write_tensor(file, *tensor);
  });
}

Checkpoint read_checkpoint(const std::string& path) {
  CheckedFile file(path, O_RDONLY);
  Header header;
  file.read(&header, sizeof header);
  require_whole(file, header);
  Checkpoint checkpoint;
  checkpoint.version = header.version;
  checkpoint.settings = file.read_text(header.settings_size);
  checkpoint.state = file.read_text(header.state_size);
  checkpoint.sampler = file.read_text(header.sampler_size);
  checkpoint.weights = read_tensor(file, header.parameters);
  checkpoint.mean = read_tensor(file, header.parameters);
  checkpoint.square = read_tensor(file, header.parameters);
  file.require_checksum();
  return checkpoint;
}

CheckpointFolder::CheckpointFolder(const std::string& folder) : files_(folder, "ppo") {
  try {
    std::filesystem::create_directories(folder);
    if (!lock_.take(folder)) {
      throw CheckpointError(folder +
                            ": another training uses it: end that one, or give another folder");
    }
    files_.remove_unfinished();
  } catch (const std::filesystem::filesystem_error& error) {
    throw CheckpointError(folder + ": cannot be used for checkpoints: " + error.code().message());
  }
}

std::optional<Checkpoint> CheckpointFolder::newest(
    const std::string& settings, const std::function<void(const std::string&)>& notice) const {
  const std::vector<std::int64_t> all = files_.numbers();
  std::vector<std::pair<std::string, std::string>> damaged;  // with the reasons
  for (auto version = all.rbegin(); version != all.rend(); ++version) {
    try {
      Checkpoint checkpoint = read_checkpoint(files_.path(*version));
      if (checkpoint.settings != settings) {
        throw CheckpointError(files_.path(*version) + ": belongs to another training, with " +
                              what_differs(checkpoint.settings, settings) +
                              ": give the options that it had, or another folder");
      }
      for (const auto& [path, why] : damaged) {
        notice(why + "; " + files_.path(*version) + " is used");
        std::filesystem::rename(path, path + ".damaged");  // else it would displace intact ones
      }
      return checkpoint;
    } catch (const DamagedCheckpoint& error) {
      damaged.emplace_back(files_.path(*version), error.what());
    }
  }
  if (!all.empty()) {
    throw CheckpointError("all checkpoints in " + files_.folder() + " are damaged (" +
                          damaged.front().second +
                          "): to start again, remove them or give another folder");
  }
  return std::nullopt;
}

void CheckpointFolder::write(const Checkpoint& checkpoint) const {
  write_checkpoint(files_.path(checkpoint.version), checkpoint);
  files_.keep_last(kKept);
}

}  // namespace batchrpc_examples::ppo
