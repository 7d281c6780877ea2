// Compiles excerpts of docs/getting-started.md that need no LibTorch, which
// scripts/check_install.sh cuts out of it.

#include <asio/io_context.hpp>
#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace rpc = batchrpc;

#include "futures_declarations.inc"

void futures(const rpc::Node& node, const std::vector<std::string>& names) {
#include "futures_statements.inc"
}

#include "late_declarations.inc"
#include "retrying_declarations.inc"

#include "tokens_declarations.inc"

void tokens(const rpc::Node& node, asio::io_context& context) {
#include "tokens_statements.inc"
}

#include "testing_declarations.inc"

void testing() {
#include "testing_statements.inc"
}
