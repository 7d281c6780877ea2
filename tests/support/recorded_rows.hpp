#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace batchrpc::test {

/// Reads a file of comma-separated values, without its first line. Each line must have `fields`
/// fields. `path` is relative to the repository. Throws std::runtime_error.
inline std::vector<std::vector<std::string>> recorded_rows(const std::string& path,
                                                           std::size_t fields) {
  std::ifstream file(std::filesystem::path(BATCHRPC_SOURCE_DIR) / path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');)
      row.push_back(field);
    if (row.size() != fields) {
      throw std::runtime_error("not " + std::to_string(fields) + " fields: " + line);
    }
  }
  return rows;
}

}  // namespace batchrpc::test
