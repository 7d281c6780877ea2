#include <batchrpc/base/version.hpp>

#define BATCHRPC_TEXT_(x) #x
#define BATCHRPC_TEXT(x) BATCHRPC_TEXT_(x)

namespace batchrpc {

std::string_view version() noexcept {
  return BATCHRPC_TEXT(BATCHRPC_VERSION_MAJOR) "." BATCHRPC_TEXT(
      BATCHRPC_VERSION_MINOR) "." BATCHRPC_TEXT(BATCHRPC_VERSION_PATCH);
}

}  // namespace batchrpc
