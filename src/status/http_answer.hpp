#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace batchrpc::status {

/// Returns whether the client has closed its side of the connection since it sent the request.
/// Thread-safe.
using ClientGone = std::function<bool()>;

/// A request.
struct HttpRequest {
  std::string path{};           ///< decoded, without the part after a '?'
  std::string host{};           ///< the Host header
  std::string origin{};         ///< the Origin header: the page that sent the request
  std::string fetch_site{};     ///< the Sec-Fetch-Site header: that page's relation to this one
  std::string authorization{};  ///< the Authorization header; empty if there are several
  /// The parameters of these names; the first of each, if there are several.
  /// @{
  std::string seconds{};
  std::string operators{};
  std::string sample{};
  /// @}
  ClientGone is_gone{};  ///< never empty
};

/// The reply to a request.
struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// The HTTP/1.1 of cpp-httplib without its sockets: bytes to bytes. It accepts only GET and HEAD,
/// one request for each connection. Only the headers that are used are parsed, so that nothing else
/// (bodies, ranges) is. It compresses nothing, to save the program's time. Thread-safe.
class HttpAnswerer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest&)>;

  /// If `handler` throws, the answer is status 500.
  explicit HttpAnswerer(Handler handler);
  ~HttpAnswerer();

  /// Returns the answer to a request; `head` is everything up to the empty line. Never empty.
  [[nodiscard]] std::string answer(
      std::string_view head, const ClientGone& is_gone = [] { return false; }) const;

 private:
  class Server;
  const std::unique_ptr<Server> server_;
};

/// Returns an answer for an error before the request was complete.
[[nodiscard]] std::string plain_answer(int status, std::string_view reason);

}  // namespace batchrpc::status
