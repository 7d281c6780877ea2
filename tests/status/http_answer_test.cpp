#include "status/http_answer.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "http_client.hpp"

namespace batchrpc::status {
namespace http_answer_test {

using test::Answer;

HttpReply echo(const HttpRequest& request) {
  if (request.path == "/throws") throw std::runtime_error("something");
  return {.body =
              request.path + "|" + request.host + "|" + request.seconds + "|" + request.fetch_site};
}

Answer answer(const std::string& head) { return Answer(HttpAnswerer(echo).answer(head)); }

TEST_CASE("a handler is told path, host, seconds and where in the browser a request is from") {
  const Answer got = answer(
      "GET /a%20b?x=1&seconds=5&seconds=6 HTTP/1.1\r\nHost: here:80\r\nCookie: no\r\n"
      "SEC-Fetch-Site: none\r\n\r\n");
  CHECK(got.status == 200);
  CHECK(got.body == "/a b|here:80|5|none");
  CHECK(got.has("Content-Length: " + std::to_string(got.body.size())));
  CHECK(got.has("Connection: close"));
  for (const char* header : {"X-Content-Type-Options: nosniff", "Cache-Control: no-store",
                             "Referrer-Policy: no-referrer"}) {
    CHECK(got.has(header));
  }
}

TEST_CASE("HEAD is answered as GET, without what GET would bring") {
  const Answer got = answer("HEAD /a HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK(got.status == 200);
  CHECK(got.body.empty());
  CHECK(got.has("Content-Length: 9"));
}

TEST_CASE("a page that is only read answers 405 to all but GET and HEAD") {
  const std::string method = GENERATE("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PRI");
  const Answer got = answer(method + " / HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc");
  CHECK(got.status == 405);
  CHECK(got.has("Allow: GET, HEAD"));
  CHECK(got.has("X-Content-Type-Options: nosniff"));
}

TEST_CASE("what a handler throws is a 500 that says it") {
  const Answer got = answer("GET /throws HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK(got.status == 500);
  CHECK(got.body == "something\n");
}

TEST_CASE("what is no request is a 400") {
  const std::string head =
      GENERATE(as<std::string>(), "\r\n\r\n", "\n\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
               "get / HTTP/1.1\r\n\r\n", "BREW / HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n");
  CHECK(answer(head).status == 400);
}

TEST_CASE("headers that are not used are not parsed: ranges, bodies, encodings, expectations") {
  const Answer got = answer(
      "GET /a HTTP/1.1\r\nHost: here\r\nRange: bytes=0-0,0-0\r\nExpect: 100-continue\r\n"
      "Transfer-Encoding: chunked\r\nContent-Length: 99999999999999999999\r\n"
      "Accept-Encoding: br, gzip\r\n: \r\nno colon\r\n\r\n");
  CHECK(got.status == 200);
  CHECK(got.body == "/a|here||");
}

}  // namespace http_answer_test
}  // namespace batchrpc::status
