// gRPC C++: unary calls by the callback API, with messages as byte buffers, so that nothing is
// copied into a protobuf message. The server gives back the slices it was sent.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "grpc_peer.grpc.pb.h"
#include "peer.hpp"

namespace {

using batchrpc_peer::Peer;

constexpr int kFrameSize = (1 << 24) - 1;  // the largest: a large message needs fewer frames

class Service final
    : public Peer::WithRawCallbackMethod_Echo<Peer::WithRawCallbackMethod_Push<Peer::Service>> {
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    *response = *request;  // refers to the same slices
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                 grpc::ByteBuffer* response) override {
    *response = grpc::ByteBuffer(nullptr, 0);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

void serve(const peer::Options& options, const std::function<void(const std::string&)>& listening) {
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  std::string address = "127.0.0.1:0";
  char folder[] = "/tmp/grpc_peer.XXXXXX";
  if (options.transport == "unix") {
    if (::mkdtemp(folder) == nullptr) throw std::runtime_error("no folder for a socket");
    address = std::string("unix:") + folder + "/socket";
  }
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameSize);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) throw std::runtime_error("it cannot listen");
  listening(options.transport == "unix" ? address : "127.0.0.1:" + std::to_string(port));
  server->Wait();
}

/// Removes the socket's file and its folder, which a server that is killed leaves.
struct SocketFile {
  std::string address;
  ~SocketFile() {
    if (address.rfind("unix:", 0) != 0) return;
    const std::string path = address.substr(5);
    std::remove(path.c_str());
    std::remove(path.substr(0, path.rfind('/')).c_str());
  }
};

class Client {
 public:
  Client(const peer::Options& options, const std::string& address, peer::Load& load)
      : load_(load),
        method_(options.payload_comes_back() ? "/batchrpc_peer.Peer/Echo"
                                             : "/batchrpc_peer.Peer/Push"),
        payload_(options.bytes, 'x'),
        expected_(options.payload_comes_back() ? options.bytes : 0),
        stub_(connect(address)),
        calls_(static_cast<std::size_t>(options.in_flight)) {}

  void start(int slot) {
    Call& call = calls_[static_cast<std::size_t>(slot)];
    call.context = std::make_unique<grpc::ClientContext>();
    const grpc::Slice slice(payload_.data(), payload_.size(), grpc::Slice::STATIC_SLICE);
    call.request = grpc::ByteBuffer(&slice, 1);
    stub_.UnaryCall(call.context.get(), method_, grpc::StubOptions(), &call.request, &call.response,
                    [this, slot](const grpc::Status& status) { ended(slot, status); });
  }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context{};
    grpc::ByteBuffer request{};
    grpc::ByteBuffer response{};
  };

  static std::shared_ptr<grpc::Channel> connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameSize);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  void ended(int slot, const grpc::Status& status) {
    Call& call = calls_[static_cast<std::size_t>(slot)];
    if (!status.ok() || call.response.Length() != expected_) {
      std::fprintf(stderr, "gRPC: a call has failed: %s\n", status.error_message().c_str());
      std::_Exit(1);
    }
    call.response.Clear();
    if (load_.next(slot)) start(slot);
  }

  peer::Load& load_;
  const std::string method_;
  const std::string payload_;
  const std::size_t expected_;
  grpc::GenericStub stub_;
  std::vector<Call> calls_;
};

void call(const peer::Options& options, const std::string& address, peer::Load& load) {
  const SocketFile file{address};
  Client client(options, address, load);
  for (int slot = 0; slot < options.in_flight; ++slot)
    client.start(slot);
  load.measure();
  load.wait_until_all_ended();
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run({.name = "gRPC",
                    .version = grpc::Version(),
                    .transports = {"tcp", "unix"},
                    .serve = &serve,
                    .call = &call},
                   argc, argv);
}
