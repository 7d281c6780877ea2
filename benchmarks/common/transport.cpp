#include "common/transport.hpp"

namespace batchrpc_benchmarks {

std::string_view to_string(Transport transport) {
  switch (transport) {
    case Transport::tcp:
      return "tcp";
    case Transport::tls:
      return "tls";
    case Transport::unix_socket:
      return "unix";
    case Transport::inproc:
      break;
  }
  return "inproc";
}

}  // namespace batchrpc_benchmarks
