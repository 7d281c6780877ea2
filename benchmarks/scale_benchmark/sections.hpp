#pragma once

#include <string>
#include <vector>

#include "scale_benchmark/growth.hpp"

namespace scale_benchmark {

/// A kind of work whose size is varied.
struct Section {
  std::string name;               ///< on the command line
  std::string unit;               ///< of its size: "a peer", …
  std::string what;               ///< what is timed
  std::vector<double> sizes;      ///< by default, ascending
  Point (*measure)(double size);  ///< once, in a process of its own
};

const std::vector<Section>& sections();

}  // namespace scale_benchmark
