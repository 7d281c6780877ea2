#pragma once

#include <cstdint>

namespace soak {

struct OpenFiles {
  int connections = 0;  ///< over TCP
  int others = 0;
};
/// Counts the file descriptors that this process has open.
OpenFiles open_files();

/// Ends one TCP connection of this process, which `number` selects, as if the network had failed;
/// the library is not informed. With `reset` data in flight is lost, and the other side gets a
/// reset. Otherwise written data still arrives. Returns false if there is no connection.
bool cut_connection(std::uint64_t number, bool reset);

}  // namespace soak
