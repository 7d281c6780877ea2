#pragma once

#include <string>
#include <vector>

#include "scale_benchmark/growth.hpp"

namespace scale_benchmark {

/// A kind of work whose size is varied.
struct Section {
  std::string name;               ///< name on the command line
  std::string unit;               ///< unit of its size: "a peer", …
  std::string what;               ///< description of what is timed
  std::vector<double> sizes;      ///< the default sizes, ascending
  Point (*measure)(double size);  ///< measures once, in a separate process
};

const std::vector<Section>& sections();

}  // namespace scale_benchmark
