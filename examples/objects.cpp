// Objects in other processes; `objects` starts three. The user creates an average on the owner,
// which has chosen its class. Then it gives a handle to an explorer that lives in the worker.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rpc = batchrpc;

// The interface that other processes know. Methods of one object run one at a time, so it needs no
// lock.
struct Average {
  virtual ~Average() = default;
  virtual double add(double value) = 0;
};

struct Mean : Average {
  explicit Mean(double first) : sum(first) {}
  double add(double value) override { return (sum += value) / ++count; }
  double sum;
  int count = 1;
};

struct Explorer {
  explicit Explorer(rpc::RRef<Average> handle) : rewards(std::move(handle)) {}
  rpc::Future<double> play(double reward) { return rewards.call<&Average::add>(reward); }
  rpc::RRef<Average> rewards;
};

std::vector<std::string> holders(const rpc::RRefReport& report) {
  std::vector<std::string> lines;
  for (const rpc::OwnedRRefs& owned : report.owned) {
    for (const rpc::RRefHolder& by : owned.holders)
      lines.push_back(by.node + " holds " + std::to_string(by.objects) + " " + owned.type);
  }
  return lines;
}

// Prints which nodes hold what, once there are `count` holders or after 5 s. The owner learns about
// holders a moment later.
void notify_holders(const rpc::Node& node, unsigned count) {
  std::vector<std::string> lines;
  int tries = 0;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    lines = node.call<std::vector<std::string>()>("owner", "holders").get();
  } while (lines.size() != count && ++tries < 500);
  for (const std::string& line : lines)
    std::cout << "  " << line << '\n';
  if (lines.empty()) std::cout << "  no node holds anything\n";
}

void use(const rpc::Node& node) {
  rpc::RRef<Average> rewards = node.create<Average(double)>("owner", 1.0);  // returns at once
  rpc::RRef<Explorer> explorer = node.create<Explorer(rpc::RRef<Average>)>("worker", rewards);
  rpc::Future<double> two = rewards.call<&Average::add>(3.0);  // nothing has waited yet
  std::cout << "average of 1 and 3: " << two.get() << '\n';
  std::cout << "and of 5, by the explorer: " << explorer.call<&Explorer::play>(5.0).get() << '\n';
  notify_holders(node, 2);

  rewards = {};  // the explorer's handle keeps it
  std::cout << "and of 7, by the explorer: " << explorer.call<&Explorer::play>(7.0).get() << '\n';
  notify_holders(node, 1);

  explorer = {};  // the explorer ends, and its handle with it
  std::cout << "the explorer is released\n";
  notify_holders(node, 0);
}

int run(const std::string& name, int rank, const std::string& join) {
  try {
    rpc::Node node({.name = name, .rank = rank, .world_size = 3, .join = join});
    if (name == "owner") {
      node.expose_implementation<Average, Mean(double)>();
      node.expose<&Average::add>();
      node.expose("holders", [&node] { return holders(rref_report(node)); });
    } else if (name == "worker") {
      node.expose_class<Explorer(rpc::RRef<Average>)>();
      node.expose<&Explorer::play>();
    } else {
      use(node);
    }
    node.shutdown_together();
  } catch (const rpc::Error& error) {
    std::cerr << "objects, " << name << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}

int run_child(const std::string& name, int rank, const std::string& join) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // if the user dies before it has joined
  return run(name, rank, join);
}

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "usage: objects   (it starts its three processes itself)\n";
    return 2;
  }
  const std::string join = "unix-abstract:objects-" + std::to_string(::getpid());
  // Fork before a node exists, because a node has threads.
  const pid_t owner = ::fork();
  if (owner == 0) return run_child("owner", 1, join);
  const pid_t worker = ::fork();
  if (worker == 0) return run_child("worker", 2, join);
  int status = run("user", 0, join);
  for (const pid_t child : {owner, worker}) {
    if (status != 0 && child > 0) ::kill(child, SIGTERM);  // it may wait for the user
    int ended = 0;
    if (::waitpid(child, &ended, 0) < 0 || ended != 0) status = 1;
  }
  return status;
}
