#include "status/page.hpp"

#include <catch2/catch.hpp>
#include <regex>
#include <string>

namespace batchrpc::status {
namespace page_test {

TEST_CASE("the page is one file that loads nothing from elsewhere") {
  const std::string page(page_html());
  CHECK(page.size() > 10'000);
  CHECK(page.size() < 80'000);
  for (const char* other : {"http://", "https://", " src=", "@import", "url(", "innerHTML", "eval(",
                            "document.write", "insertAdjacentHTML", "onclick="}) {
    INFO(other);
    CHECK(page.find(other) == std::string::npos);
  }
  const std::regex link("<link[^>]*>");
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at)
    CHECK(at->str() == R"(<link rel="icon" href="data:,">)");
}

TEST_CASE(
    "the page has a language, a width for phones, both colour schemes, and a name for each table") {
  const std::string page(page_html());
  for (const char* part :
       {"<html lang=\"en\">", "width=device-width", "prefers-color-scheme: dark", "'caption'",
        "scope: 'col'", "scope: 'row'", "role=\"status\"", ":focus-visible"}) {
    INFO(part);
    CHECK(page.find(part) != std::string::npos);
  }
}

TEST_CASE("the page puts each text through what escapes characters that change others") {
  const std::string page(page_html());
  CHECK(page.find("\\u202e") != std::string::npos);
  std::size_t count = 0;
  for (auto at = page.find("textContent = "); at != std::string::npos;
       at = page.find("textContent = ", at + 1))
    ++count;
  CHECK(count == 2);  // in setText(), and a number
}

TEST_CASE("each answer lets only its own script and style run") {
  const std::string page = page_with_nonce("0123456789abcdef");
  CHECK(page.find(kNonce) == std::string::npos);
  CHECK(page.find("<script nonce=\"0123456789abcdef\">") != std::string::npos);
  CHECK(page.find("<style nonce=\"0123456789abcdef\">") != std::string::npos);
}

}  // namespace page_test
}  // namespace batchrpc::status
