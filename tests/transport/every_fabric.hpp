#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "fabrics.hpp"
#ifdef BATCHRPC_HAS_TLS
#include "tls_fabric.hpp"
#endif

namespace batchrpc::test {
namespace every_fabric {

/// A context and the thread that the embedder runs it on.
struct Embedder {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread{[this] { context.run(); }};
  ~Embedder() {
    context.stop();
    thread.join();
  }
};

inline Fabric embedded_fabric() {
  Fabric fabric;
  auto embedder = std::make_shared<Embedder>();
  auto loop = SocketLoop::embed(embedder->context);
  fabric.server = fabric.client = std::make_shared<TcpTransport>(loop);
  fabric.server_loop = fabric.client_loop = loop;
  fabric.address = [] { return free_address("tcp"); };
  fabric.runner = embedder;
  return fabric;
}

inline Fabric virtual_fabric(const LinkOptions& link) {
  auto network = InprocNetwork::make(1);
  network->set_link(link);
  auto loop = std::make_shared<VirtualLoop>();
  return inproc_fabric(network, loop, loop);
}

struct Case {
  const char* name;
  std::function<Fabric()> make;
};

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"tcp", [] { return socket_fabric("tcp"); }},
      {"tcp, polling",
       [] { return socket_fabric("tcp", {.busy_poll = std::chrono::microseconds(50)}); }},
      {"tcp, embedded", embedded_fabric},
#ifdef BATCHRPC_HAS_TLS
      {"tcp with TLS", [] { return tls_fabric(); }},
#endif
      {"unix path", [] { return socket_fabric("unix"); }},
      {"unix abstract", [] { return socket_fabric("unix-abstract"); }},
      {"inproc",
       [] {
         return inproc_fabric(InprocNetwork::make(), SocketLoop::start(), SocketLoop::start());
       }},
      {"inproc in virtual time", [] { return virtual_fabric({}); }},
      {"inproc in virtual time, slow",
       [] {
         return virtual_fabric(
             {.latency = std::chrono::milliseconds(5), .jitter = std::chrono::milliseconds(3)});
       }},
  };
  return all;
}

}  // namespace every_fabric

/// Runs `test` over each transport.
inline void over_each(const std::function<void(Fabric&)>& test) {
  for (const every_fabric::Case& each : every_fabric::cases()) {
    INFO(each.name);
    Fabric fabric = each.make();
    test(fabric);
  }
}

}  // namespace batchrpc::test
