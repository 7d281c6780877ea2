#include <batchrpc/batchrpc.hpp>
#include <iostream>
#include <string_view>

namespace rpc = batchrpc;

int main() {
  try {
    const rpc::Node node({.name = "server", .status = "127.0.0.1:0"});
  } catch (const rpc::InvalidArgument& error) {
    std::cout << error.what() << '\n';
    return std::string_view(error.what()).find("link batchrpc::status") == std::string_view::npos;
  }
  return 1;
}
