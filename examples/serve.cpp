// A server that shuts down in good order. On SIGTERM or Ctrl-C it accepts no more calls, finishes
// those in flight, and names those it could not finish. A second signal of the same kind ends it at
// once.

#include <batchrpc/batchrpc.hpp>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <batchrpc/base/interrupt.hpp>
#include "common/seconds_between.hpp"

namespace rpc = batchrpc;

int add(int a, int b) { return a + b; }

// Takes the place of real work.
int work(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}

int usage(const std::string& what) {
  std::cerr << "usage: serve [ADDRESS [SECONDS]]   (ADDRESS: where others join, by default "
               "tcp://127.0.0.1:29500; SECONDS: time to finish calls at the end, by default 10)\n"
               "serve: "
            << what << '\n';
  return 2;
}

int main(int argc, char** argv) {
  if (argc > 3) return usage("too many arguments");
  double seconds = 10;
  try {
    if (argc == 3) seconds = std::stod(argv[2]);
  } catch (const std::logic_error&) {
    return usage(std::string(argv[2]) + " is not a number of seconds");
  }
  if (!(seconds >= 0 && seconds < 1e6))
    return usage("the time must be from 0 to a million seconds");
  try {
    rpc::Node node({.name = "server", .join = argc > 1 ? argv[1] : "tcp://127.0.0.1:29500"});
    node.expose<&add>();
    node.expose<&work>();

    rpc::Promise<int> signalled;
    rpc::Future<int> signal = signalled.get_future();
    const batchrpc::InterruptHandler handler(
        [&signalled](int number) { signalled.set_value(number); });
    std::cout << "serving at " << node.address() << std::endl;

    const int number = signal.get();
    std::cout << "signal " << number << ": ending" << std::endl;
    for (const std::string& straggler : node.shutdown(batchrpc_examples::duration_of(seconds)))
      std::cout << "not finished: " << straggler << std::endl;
  } catch (const rpc::InvalidArgument& error) {
    return usage(error.what());
  } catch (const rpc::Error& error) {
    std::cerr << "serve: " << error.what() << '\n';
    return 1;
  }
}
