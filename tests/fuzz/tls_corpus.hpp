#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fuzz/tls_steps.hpp"

namespace batchrpc::fuzz {

inline std::string steps(const std::vector<std::pair<Step, unsigned>>& all) {
  std::string bytes;
  for (const auto& [kind, count] : all) {
    bytes += static_cast<char>(kind);
    bytes += static_cast<char>(count);
  }
  return bytes;
}

/// What fuzzing of tls_records starts from: the names of files, and their content.
inline std::vector<std::pair<std::string, std::string>> tls_record_inputs() {
  const std::string hello = steps({{kPass, 0}});
  const std::string begun = hello + hello;
  const auto inserted = [](const std::string& bytes) {
    return steps({{kInsert, static_cast<unsigned>(bytes.size())}}) + bytes;
  };
  return {
      {"hello", hello},
      {"begun", begun},
      {"data", begun + steps({{kSay, 2}, {kPass, 0}, {kAnswer, 3}, {kSay, 200}, {kPass, 0}})},
      {"pieces", steps({{kPass, 3}, {kPass, 6}, {kPass, 100}, {kPass, 0}, {kPass, 5}, {kPass, 0}}) +
                     steps({{kSay, 1}, {kPass, 4}, {kPass, 40}, {kPass, 0}})},
      {"changed-hello", steps({{kPass, 50}, {kChange, 1}, {kPass, 0}})},
      {"changed-data", begun + steps({{kSay, 2}, {kPass, 60}, {kChange, 1}, {kPass, 0}})},
      {"lost", begun + steps({{kSay, 2}, {kDrop, 20}, {kPass, 0}, {kSay, 2}, {kPass, 0}})},
      {"plain-text", inserted("GET / HTTP/1.1\r\n\r\n")},
      {"huge-hello", inserted(std::string("\x16\3\1\x40\0\1\xff\xff\xff", 9))},
      {"alert", begun + inserted(std::string("\x15\3\3\0\2\2\x28", 7))},
      {"keys", begun + steps({{kUpdateKey, 0}, {kSay, 1}, {kPass, 0}, {kAnswer, 1}})},
      {"closed", begun + steps({{kSay, 3}, {kPass, 30}, {kClose, 0}, {kAnswer, 3}})}};
}

}  // namespace batchrpc::fuzz
