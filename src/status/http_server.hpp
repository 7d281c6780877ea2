#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "status/http_answer.hpp"
#include "status/listen_address.hpp"

namespace batchrpc::status {

/// What a server of HTTP bears.
struct HttpLimits {
  std::size_t connections = 64;  ///< then the one that has been slow for longest has to go
  std::size_t head_bytes = 16 * 1024;
  std::size_t threads = 3;                 ///< that answer
  std::chrono::milliseconds head{5000};    ///< for a request to come as a whole
  std::chrono::milliseconds write{10000};  ///< for some of an answer to be taken
  std::size_t write_rate = 64 * 1024;      ///< bytes/s of an answer that are to be, beside that
  std::chrono::milliseconds linger{1000};  ///< for a client to close, when all was written
};

/// Listens, reads requests, has them answered, and writes that: one thread waits for all sockets,
/// so that no client holds up another however slow it is, and threads that answer meet whole
/// requests only. A connection is for one request.
class HttpServer {
 public:
  /// The bytes that answer a request, of which it is given all up to the empty line; on several
  /// threads at once. Must not throw. One that takes long asks `is_gone` now and then.
  using Answer = std::function<std::string(std::string_view head, const ClientGone& is_gone)>;

  /// Throws JoinFailed.
  HttpServer(const ListenAddress& address, Answer answer, const HttpLimits& limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// With the port that the system has chosen.
  [[nodiscard]] const ListenAddress& address() const noexcept;
  /// Whether only this machine reaches it.
  [[nodiscard]] bool is_on_loopback() const noexcept;

  /// Closes all; waits for what is being answered, but for the calling thread itself. Thread-safe.
  void stop();

 private:
  class Parts;
  const std::shared_ptr<Parts> parts_;
};

}  // namespace batchrpc::status
