#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <random>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/transport/inproc.hpp"
#include "batchrpc/transport/virtual_host.hpp"
#include "batchrpc/transport/virtual_loop.hpp"

namespace batchrpc {

/// Simulates hosts, the network between them, and time, all in this process and from one seed. A
/// program with its nodes, batchers and handles runs in it unchanged, and the same way each time.
///
///     batchrpc::SimulatedWorld world(seed);
///     batchrpc::Node server(world.options("server"));
///     batchrpc::Node client(world.options("client"));
///     server.expose<&add>();
///     world.network().set_link({.latency = 1ms, .break_every = 100'000});
///     CHECK(client.call<&add>("server", 1, 2).get() == 3);
///
/// A host is created when it is first named. The faults here and of network() use the names of
/// hosts. Everything runs on the thread that waits for a future or calls run(), run_for() or
/// run_until(), one task after the other. Programs that block in many places at once get a thread
/// each by spawn(); only one of those threads runs at a time.
///
/// Used by one thread at a time: that of the test, or a program's while it runs. The world must
/// outlive its nodes, except those that programs own. docs/testing.md is an introduction.
class BATCHRPC_EXPORT SimulatedWorld {
 public:
  /// Makes a world in which everything random is derived from `seed`.
  explicit SimulatedWorld(std::uint64_t seed = 1);
  /// Ends the programs: their waits throw ProgramEnded.
  ~SimulatedWorld();
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;

  // --- programs and nodes

  /// Returns options for the node on `host`, which has the same name. They are `others`, with the
  /// fields that `others` leave open filled in: loop, network, seed, address and rank. The first
  /// host named here is the root (rank 0) that the others join, unless `others` have rank -1. For a
  /// host that was killed, the options are those of its next life. The log also goes to the trace.
  /// If there is neither a log sink nor a trace, it goes to standard error.
  [[nodiscard]] NodeOptions options(const std::string& host, NodeOptions others = {});

  /// Starts a program on `host`, on a thread of its own. The program runs when the world runs, and
  /// may wait anywhere. While it runs, nothing else does, until it waits for a future, calls
  /// run_for() or returns. Any other blocking call stops the world. The seed decides the order of
  /// programs that are ready at the same time.
  void spawn(const std::string& host, std::function<void()> program);

  // --- time

  /// Runs until all programs have returned, except those of hosts that were killed. Rethrows the
  /// exception of a program. Throws VirtualDeadlock, which names the hosts, when some have not
  /// returned after `at_most` of virtual time.
  void run(Duration at_most = std::chrono::hours(1));
  /// Runs for `duration`. In a program: waits for that time.
  void run_for(Duration duration);
  /// Runs until `done` returns true. It is called after each step. Returns whether that was within
  /// `at_most`.
  bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::hours(1));
  /// Runs `task` after `delay`, for later faults.
  void after(Duration delay, Task task);
  /// The virtual time since the world began.
  [[nodiscard]] Duration time() const;

  // --- faults

  /// The network, for links, partitions and cuts.
  [[nodiscard]] InprocNetwork& network() const noexcept;
  /// Sets the clock from the host's next life on. If options() or spawn() come later, that is its
  /// first life.
  void set_clock(const std::string& host, const ClockOptions& clock);
  /// Stops the host, as if by SIGSTOP; its connections stay. Here and below, a host that was never
  /// named is an InvalidArgument.
  void pause(const std::string& host);
  /// Continues a paused host.
  void resume(const std::string& host);
  /// Acts as if the process were killed: others see its connections reset, and its addresses
  /// refuse. Nothing of it runs any more. Its programs end with the world. A node of it that the
  /// test owns is cut off, so that futures of its calls never complete. Name it to options() or
  /// spawn() to start it again.
  void kill(const std::string& host);
  /// The same, but others notice nothing: the machine is gone.
  void power_off(const std::string& host);

  // --- chance

  /// The seed from which everything random is derived.
  [[nodiscard]] std::uint64_t seed() const noexcept;
  /// A generator for the random choices of the test.
  [[nodiscard]] std::mt19937_64& random() noexcept;

  /// Writes a line to `out` for every event from now on: the events of InprocNetwork::set_trace(),
  /// faults, and log lines of nodes, with the time in seconds. Two runs of one seed write the same.
  /// `out` must outlive the world.
  void trace(std::ostream& out);

  /// The loop under all hosts. Its clock is the world's.
  [[nodiscard]] const std::shared_ptr<VirtualLoop>& loop() const noexcept;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace batchrpc
