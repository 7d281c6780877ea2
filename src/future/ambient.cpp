#include "batchrpc/future/ambient.hpp"

#include <utility>

namespace batchrpc::detail {
namespace {

const Ambient*& this_threads() noexcept {
  thread_local const Ambient* ambient = nullptr;
  return ambient;
}

}  // namespace

Ambient::~Ambient() = default;

const Ambient* Ambient::current() noexcept { return this_threads(); }

const Ambient* Ambient::exchange_current(const Ambient* ambient) noexcept {
  return std::exchange(this_threads(), ambient);
}

}  // namespace batchrpc::detail
