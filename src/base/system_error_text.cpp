#include "base/system_error_text.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "batchrpc/base/error.hpp"

namespace batchrpc {

std::size_t most_descriptors() noexcept {
  constexpr rlim_t kMany = rlim_t{1} << 30;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMany;
  return std::min(limit.rlim_cur, kMany);
}

std::string system_error_text(const std::error_code& error) {
  std::string text = error.message();
  if (error == std::errc::too_many_files_open) {
    text += ": this process has no file descriptors left, and may have " +
            std::to_string(most_descriptors()) +
            "; raise the limit by ulimit -n, or close files and connections";
  } else if (error == std::errc::too_many_files_open_in_system) {
    text += ": raise the system's limit, fs.file-max, or close files";
  }
  return text;
}

void throw_system_error(int error, const std::string& call) {
  const std::error_code code(error, std::generic_category());
  if (code == std::errc::too_many_files_open || code == std::errc::too_many_files_open_in_system)
    throw Overloaded("cannot start an event loop (" + call + "): " + system_error_text(code));
  throw std::system_error(code, call);
}

}  // namespace batchrpc
