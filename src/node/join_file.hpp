#pragma once

#include <string>

#include "transport/owned_fd.hpp"

namespace batchrpc {

/// Returns the address that the root has written to its join file (NodeOptions::join with
/// `file://`); empty if there is none yet.
[[nodiscard]] std::string read_join_file(const std::string& path);

/// The join file of a root. The root locks it for as long as this object lives, so that no other
/// root replaces it; a forked child shares the lock. The file stays when the root ends, and a later
/// root replaces it.
class JoinFile {
 public:
  /// Writes the file atomically. Throws JoinFailed if it cannot be written, or if a root that is
  /// still running has written it.
  JoinFile(const std::string& path, const std::string& address);

 private:
  detail::OwnedFd locked_;
};

}  // namespace batchrpc
