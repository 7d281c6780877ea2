#include "base/system_error_text.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

// Whether descriptors have run out.
bool is_shortage(const std::error_code& error) noexcept {
  const auto* const category = &error.category();
  const bool is_of_system =
      category == &std::generic_category() || category == &std::system_category();
  return is_of_system && (error.value() == EMFILE || error.value() == ENFILE);
}

}  // namespace

std::size_t most_descriptors() noexcept {
  constexpr rlim_t kMany = rlim_t{1} << 30;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMany;
  return std::min(limit.rlim_cur, kMany);
}

std::string system_error_text(const std::error_code& error) {
  if (!is_shortage(error)) return error.message();
  // Not message(), a virtual function: to check the call, a sanitizer needs a descriptor.
  std::string text = std::strerror(error.value());
  if (error.value() == EMFILE) {
    text += ": this process has no file descriptors left, and may have " +
            std::to_string(most_descriptors()) +
            "; raise the limit by ulimit -n, or close files and connections";
  } else {
    text += ": raise the system's limit, fs.file-max, or close files";
  }
  return text;
}

void throw_system_error(int error, const std::string& call) {
  const std::error_code code(error, std::generic_category());
  if (is_shortage(code))
    throw Overloaded("cannot start an event loop (" + call + "): " + system_error_text(code));
  throw std::system_error(code, call);
}

}  // namespace batchrpc
