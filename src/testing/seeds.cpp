#include "batchrpc/testing/seeds.hpp"

#include <charconv>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return otherwise;
  const std::string_view text = value;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument(std::string(name) + "=" + value + ": not a number");
  }
  return number;
}

// The command line of this process, as a shell takes it.
std::string own_command() {
  std::ifstream file("/proc/self/cmdline");
  std::string command;
  for (std::string word; std::getline(file, word, '\0');) {
    if (!command.empty()) command += ' ';
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=./:,@%") == std::string::npos;
    if (plain) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char each : word)
      each == '\'' ? command += "'\\''" : command += each;
    command += '\'';
  }
  return command.empty() ? "the test" : command;
}

std::string repeat(std::uint64_t seed) {
  return "repeat it with: BATCHRPC_FIRST_SEED=" + std::to_string(seed) + " BATCHRPC_SEEDS=1 " +
         own_command();
}

}  // namespace

SeedFailed::~SeedFailed() = default;

void for_each_seed(std::uint64_t first, std::uint64_t count,
                   const std::function<void(std::uint64_t seed)>& test) {
  first = from_environment("BATCHRPC_FIRST_SEED", first);
  count = from_environment("BATCHRPC_SEEDS", count);
  for (std::uint64_t seed = first; seed - first < count; ++seed) {
    try {
      test(seed);
    } catch (const std::exception&) {
      std::throw_with_nested(SeedFailed("seed " + std::to_string(seed) + ": " +
                                        describe(std::current_exception()) + "; " + repeat(seed)));
    } catch (...) {
      std::cerr << "seed " << seed << " failed; " << repeat(seed) << '\n';
      throw;
    }
  }
}

}  // namespace batchrpc
