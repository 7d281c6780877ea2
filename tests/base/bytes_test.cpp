#include "batchrpc/base/bytes.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using batchrpc::as_bytes;
using batchrpc::Bytes;

TEST_CASE("Bytes that are allocated are aligned to 64 and can be written") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{4096}}) {
    const Bytes bytes = Bytes::allocate(size);
    CHECK(bytes.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % Bytes::kAlignment == 0);
    for (std::size_t i = 0; i < size; ++i)
      bytes.mutable_data()[i] = std::byte{7};
    CHECK(bytes.span().back() == std::byte{7});
  }
}

TEST_CASE("Empty bytes own nothing and are equal to each other") {
  const Bytes none;
  CHECK(none.empty());
  CHECK(none.data() == nullptr);
  CHECK(none == Bytes::allocate(0));
  CHECK(none == Bytes::copy({}));
  CHECK(Bytes::allocate(0).owner() == nullptr);
}

TEST_CASE("Copied Bytes share their memory, Bytes::copy() does not") {
  const std::string text = "some text";
  const Bytes bytes = Bytes::copy(as_bytes(text));
  const Bytes shared = bytes;  // NOLINT: the copy is what is tested
  CHECK(shared.data() == bytes.data());
  CHECK(bytes.owner().use_count() == 2);
  const Bytes copy = Bytes::copy(bytes.span());
  CHECK(copy.data() != bytes.data());
  CHECK(copy == bytes);
}

TEST_CASE("Bytes are equal when their contents are") {
  CHECK(Bytes::copy(as_bytes("abc")) == Bytes::copy(as_bytes("abc")));
  CHECK(Bytes::copy(as_bytes("abc")) != Bytes::copy(as_bytes("abd")));
  CHECK(Bytes::copy(as_bytes("abc")) != Bytes::copy(as_bytes("ab")));
  CHECK(Bytes::copy(as_bytes("abc")) != Bytes());
}

TEST_CASE("Bytes inside other memory keep its owner alive") {
  auto owner = std::make_shared<std::vector<std::byte>>(100, std::byte{1});
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  {
    const Bytes part(owner, std::span(*owner).subspan(10, 20));
    owner.reset();
    CHECK(part.size() == 20);
    CHECK(part.span().front() == std::byte{1});
    CHECK_FALSE(watch.expired());
  }
  CHECK(watch.expired());
}

TEST_CASE("Bytes without an owner only point") {
  const std::string text = "the caller's";
  const Bytes bytes(nullptr, as_bytes(text));
  CHECK(static_cast<const void*>(bytes.data()) == text.data());
  CHECK(bytes.owner() == nullptr);
}
