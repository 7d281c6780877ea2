#include "batchrpc/transport/transport.hpp"

namespace batchrpc {

Transport::~Transport() = default;

std::vector<TransportFactory> built_in_transports() { return {tcp_transport(), unix_transport()}; }

}  // namespace batchrpc
