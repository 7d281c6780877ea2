#pragma once

#include <iostream>
#include <string>

namespace batchrpc_examples {

/// Tells people what they should know. In one piece: others write to the same terminal.
inline void say(const std::string& notice) {
  std::cerr << "Notice: " + notice + "\n" << std::flush;
}

}  // namespace batchrpc_examples
