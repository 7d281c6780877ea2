#include "batchrpc/base/bytes.hpp"

#include <new>

namespace batchrpc {

Bytes Bytes::allocate(std::size_t size) {
  if (size == 0) return {};
  constexpr std::align_val_t kAlign{kAlignment};
  auto* memory = static_cast<std::byte*>(::operator new(size, kAlign));
  const std::shared_ptr<const void> owner(
      memory, [](const void* at) { ::operator delete(const_cast<void*>(at), kAlign); });
  return {owner, {memory, size}};
}

}  // namespace batchrpc
