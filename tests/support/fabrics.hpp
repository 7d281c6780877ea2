#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "batchrpc/testing.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/tcp_transport.hpp"
#include "batchrpc/transport/unix_transport.hpp"
#include "signal.hpp"

namespace batchrpc::test {

/// Two sides of a transport under test, each with its loop, and the way in which the test's thread
/// waits.
struct Fabric {
  /// Runs the loops and outlives them. Null: the loops run themselves.
  std::shared_ptr<void> runner;
  std::shared_ptr<Loop> server_loop;
  std::shared_ptr<Loop> client_loop;
  std::shared_ptr<Transport> server;
  std::shared_ptr<Transport> client;
  /// Returns a free address, another one each time.
  std::function<Address()> address;

  WaitContext& waiting() const { return *client_loop; }
  TimePoint soon() const { return client_loop->now() + kPatience; }
};

/// The two ends of a connection.
struct Pair {
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

inline std::string unique_name() {
  static std::atomic<int> count{0};
  return "batchrpc-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

inline Address free_address(const std::string& scheme) {
  if (scheme == "tcp") return Address::parse("tcp://127.0.0.1:0");
  if (scheme == "unix") return Address::parse("unix:///tmp/" + unique_name());
  return Address::parse(scheme + (scheme == "inproc" ? "://" : ":") + unique_name());
}

inline std::shared_ptr<Transport> socket_transport(const std::string& scheme,
                                                   std::shared_ptr<SocketLoop> loop) {
  if (scheme == "tcp") return std::make_shared<TcpTransport>(std::move(loop));
  return std::make_shared<UnixTransport>(std::move(loop));
}

inline Fabric socket_fabric(const std::string& scheme, const SocketLoopOptions& options = {}) {
  Fabric fabric;
  auto server_loop = SocketLoop::start(options);
  auto client_loop = SocketLoop::start(options);
  fabric.server = socket_transport(scheme, server_loop);
  fabric.client = socket_transport(scheme, client_loop);
  fabric.server_loop = std::move(server_loop);
  fabric.client_loop = std::move(client_loop);
  fabric.address = [scheme] { return free_address(scheme); };
  return fabric;
}

inline Fabric inproc_fabric(const std::shared_ptr<InprocNetwork>& network,
                            std::shared_ptr<Loop> server_loop, std::shared_ptr<Loop> client_loop) {
  Fabric fabric;
  fabric.server = network->transport(server_loop, "server");
  fabric.client = network->transport(client_loop, "client");
  fabric.server_loop = std::move(server_loop);
  fabric.client_loop = std::move(client_loop);
  fabric.address = [] { return free_address("inproc"); };
  return fabric;
}

/// Connects once. Returns the error if that failed.
inline std::pair<std::unique_ptr<Stream>, std::error_code> connect(const Fabric& fabric,
                                                                   const Address& address) {
  std::pair<std::unique_ptr<Stream>, std::error_code> result;
  Waiter waiter;
  fabric.client->connect(address, fabric.soon(),
                         [&](std::unique_ptr<Stream> stream, std::error_code error) {
                           result = {std::move(stream), error};
                           waiter.notify();
                         });
  wait_for(fabric.waiting(), waiter);
  return result;
}

/// A listener that hands its connections to the test.
class Accepting {
 public:
  Accepting(const Fabric& fabric, const Address& address)
      : fabric_(fabric),
        listener_(
            fabric.server->listen(address, [arrived = arrived_](std::unique_ptr<Stream> stream) {
              {
                const std::lock_guard lock(arrived->mutex);
                arrived->streams.push_back(std::move(stream));
              }
              arrived->signal.set();
            })) {}
  explicit Accepting(const Fabric& fabric) : Accepting(fabric, fabric.address()) {}

  Address address() const { return listener_->address(); }

  std::unique_ptr<Stream> accept() {
    while (true) {
      {
        const std::lock_guard lock(arrived_->mutex);
        if (!arrived_->streams.empty()) {
          auto stream = std::move(arrived_->streams.front());
          arrived_->streams.pop_front();
          return stream;
        }
      }
      arrived_->signal.wait(fabric_.waiting());
    }
  }

  Pair connect() {
    auto [client, error] = test::connect(fabric_, address());
    if (error) throw std::system_error(error, "connect");
    return {std::move(client), accept()};
  }

 private:
  struct Arrived {
    std::mutex mutex;
    std::deque<std::unique_ptr<Stream>> streams;
    Signal signal;
  };

  const Fabric& fabric_;
  const std::shared_ptr<Arrived> arrived_ = std::make_shared<Arrived>();
  const std::unique_ptr<Listener> listener_;
};

/// Reads and writes as a test does: one after the other, waiting when needed.
class Ends {
 public:
  explicit Ends(const Fabric& fabric) : waiting_(fabric.waiting()) {}

  void write_all(Stream& stream, std::span<const std::byte> bytes, std::size_t chunk = SIZE_MAX) {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(chunk, bytes.size()));
      const IoResult result = stream.try_write({&piece, 1});
      if (result.error) throw std::system_error(result.error, "write");
      bytes = bytes.subspan(result.bytes);
      if (result.would_block()) wait_writable(stream);
    }
  }

  /// Reads `size` bytes. Returns fewer only when the end or an error came first.
  std::vector<std::byte> read(Stream& stream, std::size_t size, std::size_t chunk = SIZE_MAX) {
    std::vector<std::byte> bytes(size);
    std::size_t count = 0;
    while (count < size) {
      const auto piece = std::span(bytes).subspan(count, std::min(chunk, size - count));
      const IoResult result = stream.try_read({&piece, 1});
      count += result.bytes;
      last = result;
      if (result.end || result.error) break;
      if (result.would_block()) wait_readable(stream);
    }
    bytes.resize(count);
    return bytes;
  }

  /// Writes `bytes` to one stream while it reads from the other. Returns the bytes that were read.
  std::vector<std::byte> transfer(Stream& from, Stream& to, std::span<const std::byte> bytes,
                                  std::size_t write_chunk = SIZE_MAX,
                                  std::size_t read_chunk = SIZE_MAX) {
    std::vector<std::byte> got(bytes.size());
    std::span<std::byte> room(got);
    const auto changed = std::make_shared<Signal>();
    const auto readable = std::make_shared<std::atomic<bool>>(true);
    const auto writable = std::make_shared<std::atomic<bool>>(true);
    while (!room.empty()) {
      if (*writable && !bytes.empty()) {
        const auto out = bytes.first(std::min(write_chunk, bytes.size()));
        const IoResult result = from.try_write({&out, 1});
        if (result.error) throw std::system_error(result.error, "write");
        bytes = bytes.subspan(result.bytes);
        if (result.would_block()) {
          *writable = false;
          from.wait_writable([=] { *writable = true, changed->set(); });
        }
      }
      if (*readable) {
        const auto in = room.first(std::min(read_chunk, room.size()));
        const IoResult result = to.try_read({&in, 1});
        if (result.error) throw std::system_error(result.error, "read");
        if (result.end) throw std::runtime_error("the end came early");
        room = room.subspan(result.bytes);
        if (result.would_block()) {
          *readable = false;
          to.wait_readable([=] { *readable = true, changed->set(); });
        }
      }
      if (!*readable && (!*writable || bytes.empty())) changed->wait(waiting_);
    }
    return got;
  }

  void wait_readable(Stream& stream) {
    Waiter waiter;
    stream.wait_readable([&] { waiter.notify(); });
    wait_for(waiting_, waiter);
  }
  void wait_writable(Stream& stream) {
    Waiter waiter;
    stream.wait_writable([&] { waiter.notify(); });
    wait_for(waiting_, waiter);
  }

  IoResult last;  ///< the result of the last read

 private:
  WaitContext& waiting_;
};

/// Bytes that show their position in the stream.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = seed * 2 + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

}  // namespace batchrpc::test
