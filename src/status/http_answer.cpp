#include "status/http_answer.hpp"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "status/ascii.hpp"

namespace batchrpc::status {
namespace {

// A connection in memory: it reads a complete request and collects the answer.
class Exchange final : public httplib::Stream {
 public:
  explicit Exchange(std::string_view in) : in_(in) {}

  [[nodiscard]] bool is_readable() const override { return !in_.empty(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t taken = std::min(size, in_.size());
    std::memcpy(to, in_.data(), taken);
    in_.remove_prefix(taken);
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, std::size_t size) override {
    out_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  [[nodiscard]] socket_t socket() const override { return INVALID_SOCKET; }

  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  std::string_view in_;
  std::string out_;
};

bool begins_as(std::string_view line, std::string_view name) noexcept {
  return line.size() > name.size() && line[name.size()] == ':' &&
         std::equal(name.begin(), name.end(), line.begin(),
                    [](char small, char any) { return small == lower(any); });
}

// Returns the request line and the headers that are used.
std::string only_what_counts(std::string_view head) {
  constexpr std::array<std::string_view, 4> kUsed{"host", "origin", "sec-fetch-site",
                                                  "authorization"};
  std::string kept;
  for (bool first = true; !head.empty(); first = false) {
    const std::size_t length = std::min(head.find('\n'), head.size());
    std::string_view line = head.substr(0, length);
    head.remove_prefix(std::min(length + 1, head.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_used =
        first || std::any_of(kUsed.begin(), kUsed.end(),
                             [&](std::string_view name) { return begins_as(line, name); });
    if (!is_used || line.find('\0') != std::string_view::npos) continue;
    kept.append(line).append("\r\n");
  }
  return kept.append("\r\n");
}

void copy(HttpReply&& from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers)
    to.set_header(name, value);
  to.set_header("Content-Type", from.type);
  to.body = std::move(from.body);
}

}  // namespace

class HttpAnswerer::Server final : public httplib::Server {
 public:
  explicit Server(HttpAnswerer::Handler handler) : handler_(std::move(handler)) {
    set_default_headers({{"X-Content-Type-Options", "nosniff"},
                         {"Cache-Control", "no-store"},
                         {"Referrer-Policy", "no-referrer"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      handle(request, response);
      return HandlerResponse::Handled;
    });
  }

  std::string answer(std::string_view head, const ClientGone& is_gone) {
    const std::string kept = only_what_counts(head);
    Exchange exchange(kept);
    bool closed = false;
    // NOLINTNEXTLINE(bugprone-unused-return-value): whether to go on with the connection
    (void)process_request(exchange, true, closed, [&](httplib::Request& request) {
      // A server has no other use for this member, so it carries is_gone to handle().
      request.response_handler = [&](const httplib::Response&) { return is_gone(); };
    });
    std::string answer = std::move(exchange).take();
    return answer.empty() ? plain_answer(400, "Bad Request") : answer;
  }

 private:
  void handle(const httplib::Request& request, httplib::Response& response) const {
    if (request.method != "GET" && request.method != "HEAD") {
      copy({.status = 405,
            .body = "this page is read-only; use GET or HEAD\n",
            .headers = {{"Allow", "GET, HEAD"}}},
           response);
      return;
    }
    if (request.get_header_value_count("Host") > 1) {
      return copy({.status = 400, .body = "the request has more than one Host header\n"}, response);
    }
    HttpRequest asked;
    asked.is_gone = [&] { return request.response_handler(response); };
    asked.path = request.path;
    asked.host = request.get_header_value("Host");
    asked.origin = request.get_header_value("Origin");
    asked.fetch_site = request.get_header_value("Sec-Fetch-Site");
    if (request.get_header_value_count("Authorization") == 1) {
      asked.authorization = request.get_header_value("Authorization");
    }
    asked.seconds = request.get_param_value("seconds");
    asked.operators = request.get_param_value("operators");
    asked.sample = request.get_param_value("sample");
    try {
      copy(handler_(asked), response);
    } catch (const std::exception& error) {
      copy({.status = 500, .body = std::string(error.what()) + "\n"}, response);
    }
  }

  const HttpAnswerer::Handler handler_;
};

HttpAnswerer::HttpAnswerer(Handler handler)
    : server_(std::make_unique<Server>(std::move(handler))) {}

HttpAnswerer::~HttpAnswerer() = default;

std::string HttpAnswerer::answer(std::string_view head, const ClientGone& is_gone) const {
  return server_->answer(head, is_gone);
}

std::string plain_answer(int status, std::string_view reason) {
  std::string body(reason);
  body += '\n';
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason) +
         "\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace batchrpc::status
