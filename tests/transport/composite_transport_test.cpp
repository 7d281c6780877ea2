#include "batchrpc/transport/composite_transport.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/error.hpp"
#include "fabrics.hpp"

namespace batchrpc::test {
namespace composite_transport_test {

TEST_CASE("a composite transport serves each scheme by what was added for it") {
  using Scheme = Address::Scheme;
  const auto loop = SocketLoop::start();
  const auto network = InprocNetwork::make();
  const auto composite = std::make_shared<CompositeTransport>();
  composite->add({Scheme::tcp, Scheme::unix_abstract}, std::make_shared<SocketTransport>(loop));
  composite->add({Scheme::inproc}, network->transport(loop, "host"));

  Fabric fabric;
  fabric.server = fabric.client = composite;
  fabric.server_loop = fabric.client_loop = loop;
  for (const Scheme scheme : {Scheme::tcp, Scheme::unix_abstract, Scheme::inproc}) {
    Accepting accepting(fabric, free_address(scheme));
    Ends ends(fabric);
    Pair pair = accepting.connect();
    const auto sent = pattern(100, 1);
    CHECK(ends.transfer(*pair.client, *pair.server, sent) == sent);
  }
  CHECK_THROWS_WITH(composite->listen(free_address(Scheme::unix_path), {}),
                    Catch::Contains("no transport for unix addresses"));
  CHECK_THROWS_AS(composite->connect(free_address(Scheme::unix_path), loop->now(), {}),
                  InvalidArgument);
}

}  // namespace composite_transport_test
}  // namespace batchrpc::test
