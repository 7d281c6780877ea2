#include "parameter_server/checkpoint.hpp"

#include <fcntl.h>

#include <cstring>

#include "flat_parameters/checked_tensor.hpp"

namespace batchrpc_examples {
namespace {

constexpr char kMagic[8] = {'b', 'r', 'p', 'c', 'k', 'p', 't', '3'};

struct Header {
  char magic[8]{};
  std::int64_t iterations = 0;
  std::int64_t servers = 0;
  std::int64_t elements = 0;
  std::int64_t velocity_elements = 0;  // 0: none
  std::int64_t settings_size = 0;
  std::int64_t history_size = 0;
};
constexpr std::int64_t kLongestText = 4096;

// Checks the sizes in the header before anything is allocated.
void require_whole(const CheckedFile& file, const Header& header) {
  const auto is_text = [](std::int64_t size) { return size >= 0 && size <= kLongestText; };
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || !is_text(header.settings_size) ||
      !is_text(header.history_size) || header.elements < 0 || header.velocity_elements < 0) {
    file.damaged("is not a checkpoint of this program");
  }
  std::int64_t left = file.size() -
                      static_cast<std::int64_t>(sizeof header + sizeof(std::uint64_t)) -
                      header.settings_size - header.history_size;
  for (const std::int64_t elements : {header.elements, header.velocity_elements}) {
    if (left < 0 || elements > left / std::int64_t{sizeof(float)}) file.damaged("is cut off");
    left -= elements * std::int64_t{sizeof(float)};
  }
  if (left > 0) file.damaged("is longer than its header states");
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const at::Tensor& velocity = checkpoint.velocity;
  Header header{.iterations = checkpoint.iterations,
                .servers = checkpoint.servers,
                .elements = checkpoint.values.numel(),
                .velocity_elements = velocity.defined() ? velocity.numel() : 0,
                .settings_size = static_cast<std::int64_t>(checkpoint.settings.size()),
                .history_size = static_cast<std::int64_t>(checkpoint.history.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  replace_file(path, [&](CheckedFile& file) {
    file.write(&header, sizeof header);
    file.write_text(checkpoint.settings);
    file.write_text(checkpoint.history);
    write_tensor(file, checkpoint.values);
    if (velocity.defined()) write_tensor(file, velocity);
  });
}

Checkpoint read_checkpoint(const std::string& path) {
  CheckedFile file(path, O_RDONLY);
  Header header;
  file.read(&header, sizeof header);
  require_whole(file, header);
  Checkpoint checkpoint;
  checkpoint.iterations = header.iterations;
  checkpoint.servers = header.servers;
  checkpoint.settings = file.read_text(header.settings_size);
  checkpoint.history = file.read_text(header.history_size);
  checkpoint.values = read_tensor(file, header.elements);
  if (header.velocity_elements > 0) {
    checkpoint.velocity = read_tensor(file, header.velocity_elements);
  }
  file.require_checksum();
  return checkpoint;
}

}  // namespace batchrpc_examples
