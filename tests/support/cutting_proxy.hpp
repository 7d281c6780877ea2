#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/buffer.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/socket_base.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/base/address.hpp"
#include "transport/socket_address.hpp"

namespace batchrpc::test {

struct CuttingProxyOptions {
  Address target = Address::parse("tcp://127.0.0.1:0");  ///< TCP in numbers, or a Unix socket
  Address listen = Address::parse("tcp://127.0.0.1:0");  ///< the same
  std::uint64_t seed = 1;
  /// A connection is cut after this many bytes on average, both directions together; 0: never.
  std::uint64_t mean_bytes = 0;
  /// Cuts reset TCP connections. False: cuts close them in order, but too early.
  bool reset = true;
};

/// A proxy for real sockets that cuts connections. It forwards each connection to the target, and
/// cuts it after a random number of bytes, in the middle of any activity. Has a thread of its own.
/// Thread-safe.
class CuttingProxy {
 public:
  explicit CuttingProxy(const CuttingProxyOptions& options)
      : options_(options), mean_bytes_(options.mean_bytes), random_(options.seed) {
    const Protocol::endpoint endpoint = to_endpoint(options.listen);
    acceptor_.open(endpoint.protocol());
    if (options.listen.scheme() == "tcp") {
      acceptor_.set_option(asio::socket_base::reuse_address(true));
    }
    acceptor_.bind(endpoint);
    acceptor_.listen();
    accept();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~CuttingProxy() {
    context_.stop();
    thread_.join();
    for (const auto& weak : lines_) {
      if (const auto line = weak.lock()) line->forget();
    }
    if (options_.listen.scheme() == "unix") {
      ::unlink(options_.listen.name().c_str());
    }
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  /// The address at which it listens.
  [[nodiscard]] Address address() {
    return detail::to_address(detail::own_address(acceptor_.native_handle()));
  }

  /// The number of connections that it has cut, and of those that it has accepted.
  /// @{
  [[nodiscard]] std::uint64_t cuts() const noexcept { return cuts_; }
  [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }
  /// @}

  /// Applies to new connections.
  void set_mean_bytes(std::uint64_t mean_bytes) noexcept { mean_bytes_ = mean_bytes; }

  /// Stops forwarding, but keeps all connections; new ones are accepted.
  void stop_forwarding() noexcept { stopped_ = true; }
  /// Continues, and forwards the bytes that have waited.
  void go_on() {
    stopped_ = false;
    for_each_line([](Line& line) { line.go_on(); });
  }

  /// Cuts all connections soon.
  void cut_all() {
    for_each_line([](Line& line) { line.cut(); });
  }

 private:
  using Protocol = asio::generic::stream_protocol;

  class Line : public std::enable_shared_from_this<Line> {
   public:
    Line(CuttingProxy& proxy, Protocol::socket client, std::uint64_t bytes)
        : proxy_(proxy),
          sockets_{std::move(client), Protocol::socket(proxy.context_)},
          left_(bytes) {}

    void connect(const Protocol::endpoint& target) {
      sockets_[1].async_connect(target, [self = shared_from_this()](std::error_code error) {
        if (error) {
          self->close(true);
          return;
        }
        self->read(0);
        self->read(1);
      });
    }

    void go_on() {
      for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
        if (const auto self = std::exchange(ways_[from].waits, nullptr)) forward(from);
      }
    }

    void forget() {
      for (Way& way : ways_)
        const auto self = std::exchange(way.waits, nullptr);
    }

    void cut() {
      if (!sockets_[0].is_open()) return;
      const auto self = shared_from_this();
      forget();
      ++proxy_.cuts_;
      close(proxy_.options_.reset);
    }

   private:
    struct Way {
      std::array<char, 16 * 1024> bytes;
      std::size_t count = 0;
      std::shared_ptr<Line> waits;  // the line itself, while data that was read waits
    };

    void read(std::size_t from) {
      sockets_[from].async_read_some(
          asio::buffer(ways_[from].bytes),
          [self = shared_from_this(), from](std::error_code error, std::size_t count) {
            if (error) {
              self->close(false);
              return;
            }
            self->ways_[from].count = count;
            self->forward(from);
          });
    }

    void forward(std::size_t from) {
      Way& way = ways_[from];
      if (proxy_.stopped_) {
        way.waits = shared_from_this();
        return;
      }
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(way.count, left_));
      left_ -= count;
      asio::async_write(sockets_[1 - from], asio::buffer(way.bytes, count),
                        [self = shared_from_this(), from](std::error_code error, std::size_t) {
                          if (error) {
                            self->close(false);
                          } else if (self->left_ == 0) {
                            self->cut();
                          } else {
                            self->read(from);
                          }
                        });
    }

    void close(bool reset) {
      for (Protocol::socket& socket : sockets_) {
        std::error_code ignored;
        if (reset) socket.set_option(asio::socket_base::linger(true, 0), ignored);
        if (!reset) socket.shutdown(asio::socket_base::shutdown_both, ignored);
        socket.close(ignored);
      }
    }

    CuttingProxy& proxy_;
    std::array<Protocol::socket, 2> sockets_;
    std::array<Way, 2> ways_;
    std::uint64_t left_;  // bytes until the cut
  };

  static Protocol::endpoint to_endpoint(const Address& address) {
    detail::SocketAddress system;
    if (address.scheme() == "tcp") {
      if (!detail::numeric_address(TcpAddress::of(address), system)) {
        throw std::invalid_argument("a cutting proxy knows addresses in numbers only");
      }
    } else {
      system = detail::unix_address(address);
    }
    return Protocol::endpoint(system.get(), system.size);
  }

  void accept() {
    acceptor_.async_accept([this](std::error_code error, Protocol::socket client) {
      if (error) return;
      ++connections_;
      const auto line = std::make_shared<Line>(*this, std::move(client), draw_bytes());
      std::erase_if(lines_, [](const auto& weak) { return weak.expired(); });
      lines_.push_back(line);
      line->connect(to_endpoint(options_.target));
      accept();
    });
  }

  std::uint64_t draw_bytes() {
    const std::uint64_t mean = mean_bytes_;
    if (mean == 0) return std::numeric_limits<std::uint64_t>::max();
    const double unit = (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53;
    return static_cast<std::uint64_t>(-std::log(unit) * static_cast<double>(mean)) + 1;
  }

  template <class Do>
  void for_each_line(Do act) {
    asio::post(context_, [this, act] {
      for (const auto& weak : lines_) {
        if (const auto line = weak.lock()) act(*line);
      }
    });
  }

  const CuttingProxyOptions options_;
  std::atomic<std::uint64_t> mean_bytes_;
  std::atomic<std::uint64_t> cuts_{0};
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<bool> stopped_{false};

  asio::io_context context_;
  asio::basic_socket_acceptor<Protocol> acceptor_{context_};
  std::mt19937_64 random_;                  // used by its thread
  std::vector<std::weak_ptr<Line>> lines_;  // used by its thread
  std::thread thread_;
};

}  // namespace batchrpc::test
