#pragma once

/// The steps of the fuzz target tls_records.
namespace batchrpc::fuzz {

/// What is done next: its kind is the lower four bits of a byte, and the next byte counts.
enum Step : unsigned {
  kPass = 0,      ///< the server gets so many bytes of the client's output; 0: all
  kChange = 1,    ///< the same, with their last byte changed
  kDrop = 2,      ///< so many bytes of the client's output are lost
  kInsert = 3,    ///< the server gets the next bytes of the input, so many
  kSay = 4,       ///< the client sends so many bytes of data
  kAnswer = 5,    ///< the server sends so many bytes of data
  kClose = 6,     ///< the connection ends
  kUpdateKey = 7  ///< the client asks for other keys
};

}  // namespace batchrpc::fuzz
