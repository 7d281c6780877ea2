#include "batchrpc/rref/object_id.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <unordered_set>

namespace batchrpc {
namespace object_id_test {

using detail::ObjectId;

constexpr std::uint64_t kIds = 65'536;

/// How many of the ids are in one bucket of a table, at most.
std::size_t most_in_a_bucket(const std::function<ObjectId(std::uint64_t)>& id) {
  std::unordered_set<ObjectId, detail::ObjectIdHash> table;
  table.reserve(kIds);
  for (std::uint64_t i = 0; i < kIds; ++i)
    table.insert(id(i));
  std::size_t most = 0;
  for (std::size_t bucket = 0; bucket < table.bucket_count(); ++bucket)
    most = std::max(most, table.bucket_size(bucket));
  return most;
}

TEST_CASE("ids are spread over a table, whichever a peer has chosen") {
  const std::size_t buckets = [] {
    std::unordered_set<int> table;
    table.reserve(kIds);
    return table.bucket_count();
  }();
  constexpr std::uint64_t kCreator = 0x1234'5678'9abc'def0;
  constexpr std::size_t kFew = 40;
  CHECK(most_in_a_bucket([](std::uint64_t i) { return ObjectId{1, kCreator, i}; }) <= kFew);
  CHECK(most_in_a_bucket([](std::uint64_t i) { return ObjectId{1, kCreator - i, i}; }) <= kFew);
  CHECK(most_in_a_bucket([](std::uint64_t i) {
          return ObjectId{1, kCreator - 64 * i, 64 * i};
        }) <= kFew);
  CHECK(most_in_a_bucket([](std::uint64_t i) { return ObjectId{i, kCreator - i, 7}; }) <= kFew);
  CHECK(most_in_a_bucket([=](std::uint64_t i) {
          return ObjectId{1, kCreator, i * buckets};
        }) <= kFew);
  CHECK(most_in_a_bucket([=](std::uint64_t i) { return ObjectId{1, i * buckets, 7}; }) <= kFew);
  CHECK(most_in_a_bucket([](std::uint64_t i) { return ObjectId{1, i << 48, 7}; }) <= kFew);
}

}  // namespace object_id_test
}  // namespace batchrpc
