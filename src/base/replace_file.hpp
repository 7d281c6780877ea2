#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <system_error>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Replaces the file at `path` by one that contains `text`. Readers find the old file or the whole
/// new one. The new file gets `mode`, less the process's umask. Returns the error if it fails; the
/// old file is then as it was. A FIFO, a device or a folder is not replaced:
/// std::errc::file_exists.
///
/// Others may write to the folder too, as to /tmp. The text is written to a file beside, whose name
/// nobody can guess and which must not exist yet, as a link neither.
[[nodiscard]] BATCHRPC_EXPORT std::error_code replace_file(const std::string& path,
                                                           std::string_view text, mode_t mode);

}  // namespace batchrpc
