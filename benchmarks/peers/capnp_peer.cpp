// Cap'n Proto RPC between two event loops. The client sends the payload from its own memory. The
// server copies it once, from the request to the reply.
#include "capnp_peer.capnp.h"

#include <capnp/common.h>
#include <capnp/ez-rpc.h>
#include <capnp/orphan.h>
#include <kj/async.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "peer.hpp"

namespace {

capnp::ReaderOptions any_size() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kj::maxValue;
  return options;
}

template <class Builder>
void set_payload(Builder builder, capnp::Data::Reader payload) {
  builder.adoptPayload(
      capnp::Orphanage::getForMessageContaining(builder).referenceExternalData(payload));
}

class Server final : public Peer::Server {
  kj::Promise<void> echo(EchoContext context) override {
    // A copy, because the request may be gone before the reply has been written.
    const auto payload = context.getParams().getPayload();
    context.getResults(capnp::MessageSize{payload.size() / sizeof(capnp::word) + 16, 0})
        .setPayload(payload);
    return kj::READY_NOW;
  }
  kj::Promise<void> push(PushContext) override { return kj::READY_NOW; }
};

void serve(const peer::Options& options, const std::function<void(const std::string&)>& listening) {
  const std::string name = "unix-abstract:capnp_peer." + std::to_string(::getpid());
  const bool local = options.transport == "unix";
  capnp::EzRpcServer server(kj::heap<Server>(), local ? name.c_str() : "127.0.0.1", 0, any_size());
  auto& scope = server.getWaitScope();
  const unsigned port = server.getPort().wait(scope);
  listening(local ? name : "127.0.0.1:" + std::to_string(port));
  kj::NEVER_DONE.wait(scope);
}

class Client final : public kj::TaskSet::ErrorHandler {
 public:
  Client(const peer::Options& options, Peer::Client server, peer::Load& load,
         kj::Own<kj::PromiseFulfiller<void>> ended)
      : options_(options),
        load_(load),
        server_(kj::mv(server)),
        ended_(kj::mv(ended)),
        payload_(options.bytes / sizeof(capnp::word) + 1),
        tasks_(*this) {}

  void start(int slot) {
    const capnp::Data::Reader payload(reinterpret_cast<const kj::byte*>(payload_.data()),
                                      options_.bytes);
    if (options_.payload_comes_back()) {
      auto request = server_.echoRequest(capnp::MessageSize{16, 0});
      set_payload(capnp::Request<Peer::EchoParams, Peer::EchoResults>::Builder(request), payload);
      tasks_.add(request.send().then([this, slot](capnp::Response<Peer::EchoResults>&& reply) {
        KJ_REQUIRE(reply.getPayload().size() == options_.bytes);
        next(slot);
      }));
    } else {
      auto request = server_.pushRequest(capnp::MessageSize{16, 0});
      set_payload(capnp::Request<Peer::PushParams, Peer::PushResults>::Builder(request), payload);
      tasks_.add(
          request.send().then([this, slot](capnp::Response<Peer::PushResults>&&) { next(slot); }));
    }
  }

 private:
  void next(int slot) {
    if (load_.next(slot)) {
      start(slot);
    } else if (load_.all_ended()) {
      ended_->fulfill();
    }
  }
  void taskFailed(kj::Exception&& exception) override { ended_->reject(kj::mv(exception)); }

  const peer::Options& options_;
  peer::Load& load_;
  Peer::Client server_;
  kj::Own<kj::PromiseFulfiller<void>> ended_;
  std::vector<capnp::word> payload_;
  kj::TaskSet tasks_;
};

void call(const peer::Options& options, const std::string& address, peer::Load& load) {
  capnp::EzRpcClient connection(address.c_str(), 0, any_size());
  auto& scope = connection.getWaitScope();
  auto ended = kj::newPromiseAndFulfiller<void>();
  Client client(options, connection.getMain<Peer>(), load, kj::mv(ended.fulfiller));
  for (int slot = 0; slot < options.in_flight; ++slot)
    client.start(slot);
  std::thread clock([&load] { load.measure(); });
  try {
    ended.promise.wait(scope);
  } catch (const kj::Exception& exception) {
    std::fprintf(stderr, "Cap'n Proto: %s\n", exception.getDescription().cStr());
    std::_Exit(1);
  }
  clock.join();
}

std::string version() {
  return std::to_string(CAPNP_VERSION / 1000000) + "." +
         std::to_string(CAPNP_VERSION / 1000 % 1000) + "." + std::to_string(CAPNP_VERSION % 1000);
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run({.name = "Cap'n Proto RPC",
                    .version = version(),
                    .transports = {"tcp", "unix"},
                    .serve = &serve,
                    .call = &call},
                   argc, argv);
}
