#pragma once

#include <torch/version.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace torch_test {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
constexpr bool kCompiled = true;
#else
constexpr bool kCompiled = false;
#endif

/// A folder of its own.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "policy.XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
  std::filesystem::path path;
};

/// One of those that scripts/export_policy.py has made for tests; empty, and said, where there are
/// none: of a network "…-cuda", where there is no GPU.
inline std::string exported(const std::string& name, const std::string& network = "mlp") {
  const std::string folder = BATCHRPC_POLICIES;
  if (!folder.empty()) {
    const std::string path = folder + "/" + network + "/" + name;
    if (!network.ends_with("-cuda") || std::filesystem::exists(path)) return path;
    WARN("left out: " << network << " is exported where there is CUDA");
    return {};
  }
  WARN("left out: a Python with PyTorch " TORCH_VERSION ", which exports policies");
  return {};
}

}  // namespace torch_test
