// Two processes and one remote function. Start `add 0` and `add 1` in any order.

#include <batchrpc/batchrpc.hpp>
#include <iostream>
#include <string>

namespace rpc = batchrpc;

int add(int a, int b) { return a + b; }

int usage(const std::string& what) {
  std::cerr << "add: " << what
            << "\nusage: add RANK [ADDRESS]   (rank 0 or 1; tcp://127.0.0.1:29500 by default)\n";
  return 2;
}

int main(int argc, char** argv) {
  const std::string rank_text = argc > 1 ? argv[1] : "";
  if (argc > 3 || (rank_text != "0" && rank_text != "1")) return usage("RANK must be 0 or 1");
  const int rank = rank_text == "0" ? 0 : 1;
  try {
    rpc::Node node({.name = "worker" + std::to_string(rank),
                    .rank = rank,
                    .world_size = 2,
                    .join = argc > 2 ? argv[2] : "tcp://127.0.0.1:29500"});
    node.expose<&add>();
    if (rank == 0) {
      rpc::Future<int> sum = node.call<&add>("worker1", 1, 2);
      std::cout << "1 + 2 = " << sum.get() << ", says worker1\n";
    }
    node.shutdown_together();  // when both are done
  } catch (const rpc::InvalidArgument& error) {
    return usage(error.what());
  } catch (const rpc::Error& error) {
    std::cerr << "add: " << error.what() << '\n';
    return 1;
  }
}
