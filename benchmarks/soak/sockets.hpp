#pragma once

#include <cstdint>

namespace soak {

struct OpenFiles {
  int connections = 0;  ///< by TCP
  int others = 0;
};
/// The file descriptors that this process has open.
OpenFiles open_files();

/// Ends one TCP connection of this process, whichever `number` picks, as if the network had:
/// without the library's knowing. With `reset` what is under way is lost, and the other side is
/// told by a reset; without, what was written still arrives. False when there is none.
bool cut_connection(std::uint64_t number, bool reset);

}  // namespace soak
