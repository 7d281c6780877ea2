#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "status/channel.hpp"
#include "status/http_answer.hpp"
#include "status/listener.hpp"

namespace batchrpc::status {

/// The limits of an HTTP server.
struct HttpLimits {
  std::size_t connections = 64;  ///< when exceeded, the slowest connection is dropped
  std::size_t head_bytes = 16 * 1024;
  std::size_t threads = 3;                 ///< threads that compute answers
  std::chrono::milliseconds head{5000};    ///< time for a handshake of TLS and a request
  std::chrono::milliseconds write{10000};  ///< time for the client to take some of an answer
  std::size_t write_rate = 64 * 1024;      ///< bytes/s of an answer that the client must take, too
  std::chrono::milliseconds linger{1000};  ///< for the client to close after the whole answer
};

/// Accepts clients, reads requests, gets their answers and writes them. One thread waits for all
/// sockets, so that a slow client does not delay others. The threads that compute answers see
/// complete requests only. A connection serves one request.
class HttpServer {
 public:
  /// Returns the answer to a request; `head` is everything up to the empty line. Called on several
  /// threads at once; must not throw. If it takes long, it checks `is_gone` now and then.
  using Answer = std::function<std::string(std::string_view head, const ClientGone& is_gone)>;

  HttpServer(Listener listener, Answer answer, const HttpLimits& limits = {},
             Channels channels = plain_channel);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The address, with the port that the system chose.
  [[nodiscard]] const ListenAddress& address() const noexcept;

  /// Closes everything. Waits for answers in progress, except one on the calling thread.
  /// Thread-safe.
  void stop();

 private:
  class Parts;
  const std::shared_ptr<Parts> parts_;
};

}  // namespace batchrpc::status
