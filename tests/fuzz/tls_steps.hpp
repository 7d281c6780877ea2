#pragma once

/// The steps of the fuzz target tls_records.
namespace batchrpc::fuzz {

/// The kind of a step is the lower four bits of a byte; the next byte is its count.
enum Step : unsigned {
  kPass = 0,      ///< the server gets the first `count` bytes of the client's output; 0: all
  kChange = 1,    ///< the same, with their last byte changed
  kDrop = 2,      ///< the first `count` bytes of the client's output are lost
  kInsert = 3,    ///< the server gets the next `count` bytes of the input
  kSay = 4,       ///< the client sends 64 * `count` bytes of data
  kAnswer = 5,    ///< the server sends 96 * `count` bytes of data
  kClose = 6,     ///< the connection ends
  kUpdateKey = 7  ///< the client changes its key `count` + 1 times
};

}  // namespace batchrpc::fuzz
