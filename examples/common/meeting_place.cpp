#include "common/meeting_place.hpp"

#include <random>

#include "common/free_port.hpp"

namespace batchrpc_examples {

std::vector<batchrpc::TransportFactory> transports_of(TransportChoice choice,
                                                      const std::string& join) {
  if (choice == TransportChoice::tcp) return {batchrpc::tcp_transport()};
  const bool meets_by_tcp = join.starts_with("tcp:") || join.starts_with("env:");
  if (choice == TransportChoice::unix_socket && !meets_by_tcp) return {batchrpc::unix_transport()};
  return batchrpc::built_in_transports();
}

std::string new_meeting_place(const std::string& program, TransportChoice transport) {
  if (transport == TransportChoice::tcp) {
    return "tcp://127.0.0.1:" + std::to_string(free_port());
  }
  std::random_device random;
  return "unix-abstract:" + program + "-" + std::to_string(random()) + "-" +
         std::to_string(random());
}

const std::map<std::string, TransportChoice>& transports() {
  static const std::map<std::string, TransportChoice> kTransports{
      {"auto", TransportChoice::automatic},
      {"tcp", TransportChoice::tcp},
      {"unix", TransportChoice::unix_socket}};
  return kTransports;
}

std::string transport_word(TransportChoice transport) {
  for (const auto& [word, choice] : transports()) {
    if (choice == transport) return word;
  }
  return {};
}

}  // namespace batchrpc_examples
