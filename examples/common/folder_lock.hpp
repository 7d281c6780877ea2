#pragma once

#include <string>

namespace batchrpc_examples {

/// Has a folder for this alone among all that ask for it so, in this process or another of the
/// machine, until it goes or the process ends. Leaves no file. Where folders cannot be locked, as
/// on NFS, everybody has it. Not thread safe.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Once. False: another has the folder.
  [[nodiscard]] bool take(const std::string& folder);

 private:
  int descriptor_ = -1;
};

}  // namespace batchrpc_examples
