#pragma once

#include <memory>

#include "batchrpc/base/log.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/security.hpp"
#include "tls/credentials.hpp"

namespace batchrpc::tls {

/// Makes the security of a node by its options and, where they are empty, by the environment
/// variables BATCHRPC_TOKEN_FILE and BATCHRPC_TOKEN. Null if it is insecure. Loads what the options
/// or the environment name; the token of the user only when it is first needed. Throws
/// InvalidArgument that names the option and the reason.
[[nodiscard]] std::shared_ptr<StreamSecurity> make_security(const SecurityOptions& options,
                                                            const Owner& owner,
                                                            std::shared_ptr<Loop> loop,
                                                            const Log& log);

}  // namespace batchrpc::tls
