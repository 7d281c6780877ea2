#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "batchrpc/node/node.hpp"
#include "node/virtual_world.hpp"
#include "node_sockets.hpp"

namespace batchrpc::test {

/// Options of the root of an open group, over real sockets and in real time.
[[nodiscard]] inline NodeOptions real_root(std::string name = "a", int workers = 4) {
  NodeOptions options;
  options.name = std::move(name);
  options.num_worker_threads = workers;
  options.expose_within = Duration::zero();
  return options;
}

/// Options of a node that joins `root`.
[[nodiscard]] inline NodeOptions real_joining(const Node& root, std::string name, int workers = 4) {
  NodeOptions options = real_root(std::move(name), workers);
  options.rank = -1;
  options.join = root.address();
  return options;
}

/// Two nodes with threads and sockets of their own.
struct RealPair {
  explicit RealPair(int workers = 4, Sockets sockets = Sockets::all)
      : a([&] {
          NodeOptions options = real_root("a", workers);
          options.transports = transports_of(sockets);
          if (sockets == Sockets::unix_only)
            options.join = "unix-abstract:batchrpc-test-" + std::to_string(::getpid());
          return options;
        }()),
        b([&] {
          NodeOptions options = real_joining(a, "b", workers);
          options.transports = transports_of(sockets);
          return options;
        }()) {}

  Node a;
  Node b;
};

}  // namespace batchrpc::test
