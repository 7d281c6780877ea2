#pragma once

#include <string>

namespace batchrpc_examples {

/// Locks a folder against other FolderLocks of this machine, in this process or others, until it is
/// destroyed or the process ends. Leaves no file. If the file system cannot lock folders (NFS),
/// every lock succeeds. Not thread-safe.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Call it once. Returns false if the folder is locked already.
  [[nodiscard]] bool take(const std::string& folder);

 private:
  int descriptor_ = -1;
};

}  // namespace batchrpc_examples
