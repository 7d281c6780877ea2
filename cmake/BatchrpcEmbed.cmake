# A script for build time: writes a C++ file with a function that returns the text of a file.
#
#   cmake -DINPUT=page.html -DOUTPUT=page_html.cpp -P BatchrpcEmbed.cmake

file(READ ${INPUT} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
file(WRITE ${OUTPUT} "// Made of page.html: change that.
#include \"status/page.hpp\"

namespace batchrpc::status {
namespace {

constexpr unsigned char kPage[${size}] = {
${bytes}};

}  // namespace

std::string_view page_html() noexcept {
  return {reinterpret_cast<const char*>(kPage), sizeof kPage};
}

}  // namespace batchrpc::status
")
