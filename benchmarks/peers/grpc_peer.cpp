// gRPC C++: unary calls with the callback API. Messages are byte buffers, so nothing is copied into
// a protobuf message. The server returns the slices that it received.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "grpc_peer.grpc.pb.h"
#include "peer.hpp"

namespace {

using batchrpc_peer::Peer;

constexpr int kFrameSize =
    (1 << 24) - 1;  // the largest possible, so that a large message needs fewer frames

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

/// The same with the completion-queue API: each queue has a thread, and calls wait in each queue.
class QueueServer {
 public:
  using Service = Peer::WithRawMethod_Echo<Peer::WithRawMethod_Push<Peer::Service>>;

  void prepare(grpc::ServerBuilder& builder, unsigned threads) {
    builder.RegisterService(&service_);
    for (unsigned i = 0; i < threads; ++i)
      queues_.push_back(builder.AddCompletionQueue());
  }
  [[noreturn]] void run() {
    std::vector<std::thread> threads;
    for (const auto& queue : queues_) {
      threads.emplace_back([this, &queue] {
        for (int i = 0; i < kWaiting; ++i)
          for (const bool echo : {true, false})
            expect(*queue, echo);
        void* tag = nullptr;
        bool good = false;
        while (queue->Next(&tag, &good))
          go_on(*queue, static_cast<Call*>(tag), good);
      });
    }
    while (true)
      ::pause();
  }

 private:
  static constexpr int kWaiting = 128;
  struct Call {
    explicit Call(bool is_echo) : echo(is_echo) {}
    grpc::ServerContext context{};
    grpc::ByteBuffer request{};
    grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer{&context};
    bool echo;
    bool answered = false;
  };

  void expect(grpc::ServerCompletionQueue& queue, bool echo) {
    auto* call = new Call(echo);  // it is its own tag, and is deleted after it was answered
    if (echo) {
      service_.RequestEcho(&call->context, &call->request, &call->writer, &queue, &queue, call);
    } else {
      service_.RequestPush(&call->context, &call->request, &call->writer, &queue, &queue, call);
    }
  }
  void go_on(grpc::ServerCompletionQueue& queue, Call* call, bool good) {
    if (!good || call->answered) {
      delete call;
      return;
    }
    expect(queue, call->echo);
    call->answered = true;
    call->writer.Finish(call->echo ? call->request : grpc::ByteBuffer(nullptr, 0), grpc::Status::OK,
                        call);
  }

  Service service_{};
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_{};
};

void serve(const peer::Options& options, const std::function<void(const std::string&)>& listening) {
  Service service;
  QueueServer by_queues;
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
  const bool callbacks = options.api == "callback";
  if (callbacks) {
    builder.RegisterService(&service);
  } else {
    by_queues.prepare(builder, options.api == "queue" ? 1 : std::thread::hardware_concurrency());
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) throw std::runtime_error("the server cannot listen");
  listening(options.transport == "unix" ? address : "127.0.0.1:" + std::to_string(port));
  if (!callbacks) by_queues.run();
  server->Wait();
}

/// Removes the socket's file and its folder, which a killed server leaves behind.
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
        callbacks_(options.api == "callback"),
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
    if (!callbacks_) {
      call.reader = stub_.PrepareUnaryCall(call.context.get(), method_, call.request, &queue_);
      call.reader->StartCall();
      call.reader->Finish(&call.response, &call.status, &call);
      return;
    }
    stub_.UnaryCall(call.context.get(), method_, grpc::StubOptions(), &call.request, &call.response,
                    [this, slot](const grpc::Status& status) { ended(slot, status); });
  }

  /// Waits for the replies of the completion-queue API.
  void take_replies() {
    void* tag = nullptr;
    bool good = false;
    while (queue_.Next(&tag, &good)) {
      const auto* call = static_cast<Call*>(tag);
      ended(static_cast<int>(call - calls_.data()), call->status);
    }
  }
  void stop() { queue_.Shutdown(); }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context{};
    grpc::ByteBuffer request{};
    grpc::ByteBuffer response{};
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader{};
    grpc::Status status{};
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
  const bool callbacks_;
  grpc::CompletionQueue queue_{};
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
  std::thread replies([&client] { client.take_replies(); });
  load.measure();
  load.wait_until_all_ended();
  client.stop();
  replies.join();
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run({.name = "gRPC",
                    .version = grpc::Version(),
                    .transports = {"tcp", "unix"},
                    .apis = {"callback", "queue", "queues"},
                    .serve = &serve,
                    .call = &call},
                   argc, argv);
}
