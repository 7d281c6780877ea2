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

/// Hosts, a network between them, and time, all in this process and out of one seed: a program with
/// its nodes, batchers and handles runs in it unchanged, and the same way each time.
///
///     batchrpc::SimulatedWorld world(seed);
///     batchrpc::Node server(world.options("server"));
///     batchrpc::Node client(world.options("client"));
///     server.expose<&add>();
///     world.network().set_link({.latency = 1ms, .break_every = 100'000});
///     CHECK(client.call<&add>("server", 1, 2).get() == 3);
///
/// A host is made when it is first named; faults, here and of network(), go by its name. All runs
/// on the thread that waits for a future or calls run(), run_for() or run_until(), one task after
/// the other; programs that block in many places at once get a thread each by spawn(), of which one
/// runs at a time.
///
/// Used by one thread at a time: that of the test, or a program's while it runs. Outlives its
/// nodes, but those that programs own. docs/testing.md is an introduction.
class BATCHRPC_EXPORT SimulatedWorld {
 public:
  /// All that is random comes from `seed`.
  explicit SimulatedWorld(std::uint64_t seed = 1);
  /// Ends the programs: their waits throw ProgramEnded.
  ~SimulatedWorld();
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;

  // --- programs and nodes

  /// Options of the node on `host`, of the same name: `others`, and what they leave open of loop,
  /// network, seed, address and rank. The first host named here is the root (rank 0) that the
  /// others join, unless `others` say rank -1. For a host that was killed: of its next life. The
  /// log goes to the trace, too; without a sink of its own and a trace, to standard error.
  [[nodiscard]] NodeOptions options(const std::string& host, NodeOptions others = {});

  /// Begins a program on `host`, on a thread of its own; it may wait wherever it likes. It runs
  /// when the world does, and while it runs, nothing else does, until it waits for a future, calls
  /// run_for() or returns. Anything else that blocks stops the world. The order of several that
  /// could go on comes from the seed.
  void spawn(const std::string& host, std::function<void()> program);

  // --- time

  /// Runs until all programs have returned, but those of hosts that were killed. Throws what a
  /// program has thrown; VirtualDeadlock, which names the hosts, when some have not returned after
  /// `at_most` of virtual time.
  void run(Duration at_most = std::chrono::hours(1));
  /// Runs for so long. In a program: it waits for so long.
  void run_for(Duration duration);
  /// Runs until `done` is true, which is asked after each step. Whether it was within `at_most`.
  bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::hours(1));
  /// Runs `task` after so long: for faults that are to come.
  void after(Duration delay, Task task);
  /// Since the world's beginning.
  [[nodiscard]] Duration time() const;

  // --- faults

  /// Links, partitions, cuts.
  [[nodiscard]] InprocNetwork& network() const noexcept;
  /// From the host's next life on; of its first, if options() or spawn() come later.
  void set_clock(const std::string& host, const ClockOptions& clock);
  /// Nothing runs on the host any more, as if by SIGSTOP; its connections stay. Here and below, a
  /// host that was never named is an InvalidArgument.
  void pause(const std::string& host);
  /// It goes on.
  void resume(const std::string& host);
  /// As if the process were killed: others see its connections reset and its addresses refuse.
  /// Nothing of it runs any more: its programs end with the world, and a node of it that the test
  /// owns is cut off, so that futures of its calls never complete. Name it to options() or spawn()
  /// to start it again.
  void kill(const std::string& host);
  /// The same, but others hear nothing: the machine is gone.
  void power_off(const std::string& host);

  // --- chance

  /// From which all that is random comes.
  [[nodiscard]] std::uint64_t seed() const noexcept;
  /// For what is random in the test.
  [[nodiscard]] std::mt19937_64& random() noexcept;

  /// Writes a line to `out`, which outlives the world, for all that happens from now on: what
  /// InprocNetwork::set_trace() tells, faults, and what nodes log, with the time in seconds. Two
  /// runs of one seed write the same.
  void trace(std::ostream& out);

  /// The loop under all hosts, whose clock is the world's.
  [[nodiscard]] const std::shared_ptr<VirtualLoop>& loop() const noexcept;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace batchrpc
