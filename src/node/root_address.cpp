#include "node/root_address.hpp"

#include "node/join_file.hpp"
#include "node/options_check.hpp"

namespace batchrpc {

std::string RootAddress::choose() const {
  if (!nearer_.empty()) return nearer_;
  return joins_by_file(options_) ? read_join_file(join_file(options_)) : options_.join;
}

void RootAddress::use_nearer(std::string address) {
  nearer_ = std::move(address);
  ++nearer_tries_;
}

void RootAddress::reset() noexcept {
  nearer_.clear();
  nearer_tries_ = 0;
}

}  // namespace batchrpc
