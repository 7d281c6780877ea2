#pragma once

#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "batchrpc/testing.hpp"
#include "long_tests.hpp"

namespace batchrpc::test {

/// How often things happened in many programs.
using Outcomes = std::map<std::string, std::uint64_t>;

/// Runs random_programs() programs, each with its own seed, until one has complaints. Returns the
/// outcomes, or none if there were too few programs to judge by.
template <class Program>
Outcomes run_programs(const std::string& what) {
  Outcomes outcomes;
  std::uint64_t programs = 0;
  for_each_seed(1, random_programs(), [&](std::uint64_t seed) {
    Program program(seed);
    program.run();
    ++programs;
    for (const auto& [name, times] : program.outcomes())
      outcomes[name] += times;
    if (program.complaints().empty()) return;
    std::string all;
    for (const std::string& complaint : program.complaints())
      all += "\n  " + complaint;
    throw std::runtime_error(all + "\n");
  });
  std::cout << programs << " random " << what << ":";
  for (const auto& [name, times] : outcomes)
    std::cout << " " << name << " " << times << ",";
  std::cout << std::endl;
  return programs < 1000 ? Outcomes() : outcomes;
}

}  // namespace batchrpc::test
