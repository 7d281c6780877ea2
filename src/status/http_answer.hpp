#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace batchrpc::status {

/// Whether the client has closed its side of the connection, since it has sent the request.
/// Thread-safe.
using ClientGone = std::function<bool()>;

/// What is asked for.
struct HttpRequest {
  std::string path{};        ///< decoded, without what follows a '?'
  std::string host{};        ///< the Host header
  std::string origin{};      ///< the Origin header: of a page that asks
  std::string fetch_site{};  ///< the Sec-Fetch-Site header: where in the browser it comes from
  std::string seconds{};     ///< the parameter of that name, of several the first
  ClientGone is_gone{};      ///< never empty
};

/// What is answered.
struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// HTTP/1.1 of cpp-httplib, without its sockets: bytes to bytes. Only GET and HEAD are let through,
/// each on a connection of its own; of the headers only those that are used, so that no others are
/// parsed (bodies, ranges), and nothing is compressed, which would take from the program's time.
/// Thread-safe.
class HttpAnswerer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest&)>;

  /// What `handler` throws is answered as 500.
  explicit HttpAnswerer(Handler handler);
  ~HttpAnswerer();

  /// The bytes that answer a request, of which `head` is all up to the empty line. Never empty.
  [[nodiscard]] std::string answer(
      std::string_view head, const ClientGone& is_gone = [] { return false; }) const;

 private:
  class Server;
  const std::unique_ptr<Server> server_;
};

/// An answer that says what was wrong before there was a whole request.
[[nodiscard]] std::string plain_answer(int status, std::string_view reason);

}  // namespace batchrpc::status
