#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/free_port.hpp"
#include "process/program_run.hpp"

// The program `parameter_server`, as people start it.
namespace batchrpc_examples {

inline Words parameter_server(const Words& words) {
  Words command{std::string(BATCHRPC_BIN_DIR) + "/parameter_server", "--batch-size", "2", "--image",
                "32"};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

inline int run(const Folder& folder, const Words& words) {
  return end_of(start(folder, "all", parameter_server(words)), folder, "all", 100s);
}

// A training whose processes are started one by one, as torchrun does.
struct Training {
  Training(const Folder& its_folder, int size, Words words)
      : folder(its_folder), world_size(size), arguments(std::move(words)) {}

  ChildProcess rank(int rank, const Words& more = {}) const {
    Words words = arguments;
    words.insert(words.end(), more.begin(), more.end());
    return start(folder, std::to_string(rank), parameter_server(words),
                 {{"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", std::to_string(port)},
                  {"RANK", std::to_string(rank)},
                  {"WORLD_SIZE", std::to_string(world_size)}});
  }

  const Folder& folder;
  int world_size;
  Words arguments;
  std::uint16_t port = free_port();
};

}  // namespace batchrpc_examples
