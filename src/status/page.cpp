#include "status/page.hpp"

namespace batchrpc::status {

std::string page_with_nonce(std::string_view nonce) {
  std::string page(page_html());
  for (std::size_t at = page.find(kNonce); at != std::string::npos;
       at = page.find(kNonce, at + nonce.size())) {
    page.replace(at, kNonce.size(), nonce);
  }
  return page;
}

}  // namespace batchrpc::status
