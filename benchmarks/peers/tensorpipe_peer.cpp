// TensorPipe alone. A call's 64 bytes travel in the message's description, larger payloads as
// tensors. With --transport shm it uses everything available on one machine, with tcp what is
// available between two machines. It chooses the channel of a tensor itself, with PyTorch's
// priorities.
#include <tensorpipe/tensorpipe.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "peer.hpp"

namespace {

using Pipe = std::shared_ptr<tensorpipe::Pipe>;

constexpr std::size_t kLarge = 4096;
constexpr int kLanes = 16;  // connections that share a large tensor, as in PyTorch

void check(const tensorpipe::Error& error) {
  if (!error) return;
  std::fprintf(stderr, "TensorPipe: %s\n", error.what().c_str());
  std::_Exit(1);
}

std::shared_ptr<tensorpipe::Context> make_context(const std::string& transport) {
  auto context = std::make_shared<tensorpipe::Context>();
  context->registerTransport(0, "uv", tensorpipe::transport::uv::create());
  context->registerChannel(0, "basic", tensorpipe::channel::basic::create());
  std::vector<std::shared_ptr<tensorpipe::transport::Context>> lanes;
  std::vector<std::shared_ptr<tensorpipe::transport::Listener>> listeners;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.push_back(tensorpipe::transport::uv::create());
    listeners.push_back(lanes.back()->listen("127.0.0.1:0"));
  }
  context->registerChannel(
      100, "mpt", tensorpipe::channel::mpt::create(std::move(lanes), std::move(listeners)));
  if (transport == "shm") {
    context->registerTransport(200, "shm", tensorpipe::transport::shm::create());
    context->registerChannel(200, "cma", tensorpipe::channel::cma::create());
  }
  return context;
}

/// The reused memory of a message's tensor.
class Buffers {
 public:
  explicit Buffers(std::size_t bytes) : bytes_(bytes) {}

  std::shared_ptr<std::vector<char>> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_shared<std::vector<char>>(bytes_);
    auto buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(std::shared_ptr<std::vector<char>> buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  const std::size_t bytes_;
  std::mutex mutex_{};
  std::vector<std::shared_ptr<std::vector<char>>> free_{};
};

tensorpipe::Message message(std::string head, std::vector<char>* tensor) {
  tensorpipe::Message result;
  result.metadata = std::move(head);
  if (tensor != nullptr) {
    result.tensors.resize(1);
    result.tensors[0].buffer = tensorpipe::CpuBuffer{.ptr = tensor->data()};
    result.tensors[0].length = tensor->size();
  }
  return result;
}

tensorpipe::Allocation place(std::vector<char>* tensor) {
  tensorpipe::Allocation result;
  if (tensor != nullptr) {
    result.tensors.resize(1);
    result.tensors[0].buffer = tensorpipe::CpuBuffer{.ptr = tensor->data()};
  }
  return result;
}

void answer(const Pipe& pipe, const peer::Options& options, Buffers& buffers) {
  pipe->readDescriptor(
      [&, pipe](const tensorpipe::Error& error, tensorpipe::Descriptor descriptor) {
        if (error) std::_Exit(0);  // the client has ended
        auto tensor = descriptor.tensors.empty() ? nullptr : buffers.take();
        pipe->read(place(tensor.get()), [&, pipe, tensor, head = std::move(descriptor.metadata)](
                                            const tensorpipe::Error& wrong) {
          check(wrong);
          const bool back = tensor && options.payload_comes_back();
          pipe->write(message(head, back ? tensor.get() : nullptr),
                      [&buffers, tensor](const tensorpipe::Error& failed) {
                        check(failed);
                        if (tensor) buffers.give_back(tensor);
                      });
        });
        answer(pipe, options, buffers);
      });
}

void serve(const peer::Options& options, const std::function<void(const std::string&)>& listening) {
  const auto context = make_context(options.transport);
  const bool shared = options.transport == "shm";
  const std::string address =
      shared ? "shm://tensorpipe_peer" + std::to_string(::getpid()) : std::string("uv://127.0.0.1");
  const auto listener = context->listen({address});
  Buffers buffers(options.bytes);
  Pipe kept;
  listener->accept([&](const tensorpipe::Error& error, Pipe pipe) {
    check(error);
    kept = std::move(pipe);
    answer(kept, options, buffers);
  });
  listening(listener->url(shared ? "shm" : "uv"));
  std::promise<void>().get_future().wait();
}

class Client {
 public:
  Client(const peer::Options& options, Pipe pipe, peer::Load& load)
      : options_(options), load_(load), pipe_(std::move(pipe)) {
    const auto slots = static_cast<std::size_t>(options.in_flight);
    if (options.bytes >= kLarge) {
      sent_.assign(slots, std::vector<char>(options.bytes, 'x'));
      received_.assign(slots, std::vector<char>(options.bytes));
    }
  }

  void start(int slot) {
    std::string head(options_.bytes < kLarge ? options_.bytes : sizeof slot, 'x');
    std::memcpy(head.data(), &slot, sizeof slot);
    auto* tensor = sent_.empty() ? nullptr : &sent_[static_cast<std::size_t>(slot)];
    pipe_->write(message(std::move(head), tensor),
                 [](const tensorpipe::Error& error) { check(error); });
  }

  void receive() {
    pipe_->readDescriptor(
        [this](const tensorpipe::Error& error, tensorpipe::Descriptor descriptor) {
          if (load_.all_ended()) return;
          check(error);
          int slot = 0;
          std::memcpy(&slot, descriptor.metadata.data(), sizeof slot);
          auto* tensor =
              descriptor.tensors.empty() ? nullptr : &received_[static_cast<std::size_t>(slot)];
          pipe_->read(place(tensor), [this, slot](const tensorpipe::Error& wrong) {
            check(wrong);
            if (load_.next(slot)) start(slot);
          });
          receive();
        });
  }

 private:
  const peer::Options& options_;
  peer::Load& load_;
  Pipe pipe_;
  std::vector<std::vector<char>> sent_{};
  std::vector<std::vector<char>> received_{};
};

void call(const peer::Options& options, const std::string& address, peer::Load& load) {
  const auto context = make_context(options.transport);
  Client client(options, context->connect(address), load);
  client.receive();
  for (int slot = 0; slot < options.in_flight; ++slot)
    client.start(slot);
  load.measure();
  load.wait_until_all_ended();
  context->close();
  context->join();
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run({.name = "TensorPipe",
                    .version = TENSORPIPE_VERSION,
                    .transports = {"tcp", "shm"},
                    .serve = &serve,
                    .call = &call},
                   argc, argv);
}
