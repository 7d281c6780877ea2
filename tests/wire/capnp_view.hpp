#pragma once

#include <capnp/serialize.h>

#include <catch2/catch.hpp>
#include <span>

#include "batchrpc/wire/codec.hpp"
#include "wire/frame.capnp.h"

namespace batchrpc::test {

/// A frame of ours, read by Cap'n Proto's own reader.
class CapnpView {
 public:
  explicit CapnpView(std::span<const Word> frame)
      : reader_(kj::arrayPtr(reinterpret_cast<const capnp::word*>(frame.data()), frame.size())) {
    REQUIRE(reader_.getEnd() == reinterpret_cast<const capnp::word*>(frame.data()) + frame.size());
  }
  schema::Frame::Reader operator*() { return reader_.getRoot<schema::Frame>(); }

 private:
  capnp::FlatArrayMessageReader reader_;
};

}  // namespace batchrpc::test
