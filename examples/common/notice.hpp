#pragma once

#include <iostream>
#include <string>

namespace batchrpc_examples {

/// Prints a notice, in one piece because other processes write to the same terminal.
inline void say(const std::string& notice) {
  std::cerr << "Notice: " + notice + "\n" << std::flush;
}

}  // namespace batchrpc_examples
