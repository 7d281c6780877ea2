#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "batchrpc/base/function.hpp"
#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"
#include "tls/credentials.hpp"
#include "tls/off_loop.hpp"
#include "tls/records.hpp"

namespace batchrpc::tls {

/// The handshake on one stream. It computes off the loop, one step after the other; between them it
/// waits for the stream. Thread-safe.
class Handshake : public std::enable_shared_from_this<Handshake> {
 public:
  /// How it has ended.
  struct Outcome {
    std::unique_ptr<Stream> below{};  ///< null if it has failed
    std::unique_ptr<Records> records{};
    ProvenPeer peer{};
    std::error_code error{};
    std::string reason{};  ///< why it has failed, for the log
  };
  using Done = UniqueFunction<void(Outcome)>;

  /// `done` is called once, on the loop, unless the handshake is dropped before.
  Handshake(std::shared_ptr<Loop> loop, std::shared_ptr<Credentials> credentials,
            std::unique_ptr<Stream> below, bool is_server, Done done);

  /// Takes the next steps, as far as the stream lets it. `threads` runs those that follow.
  void run(const std::weak_ptr<OffLoop>& threads);

  /// Ends it with this error, unless it is over.
  void give_up(std::error_code error);
  /// Ends it without a call.
  void drop();

  [[nodiscard]] bool is_server() const noexcept { return is_server_; }
  /// The peer, for messages.
  [[nodiscard]] const std::string& description() const noexcept { return description_; }

 private:
  enum class Next : unsigned char { step, read, write, over };

  Next step();
  Next send();
  Next receive();
  [[nodiscard]] std::error_code check_hello() const;
  Next finished();
  Next failed(std::error_code error, std::string reason = {});
  void report(Outcome outcome);
  void wait(Next next, const std::weak_ptr<OffLoop>& threads);

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Credentials> credentials_;
  const bool is_server_;
  const std::string description_;

  // The thread that runs uses these.
  std::unique_ptr<Stream> below_;
  std::unique_ptr<Records> records_;
  std::array<std::byte, 4096> input_{};
  std::size_t hello_bytes_ = 0;  // bytes read of a client's hello, until its size is known
  std::vector<std::byte> leaving_;
  bool is_finished_ = false;

  std::mutex mutex_;  // guards what follows
  Done done_;         // empty once it is over
};

}  // namespace batchrpc::tls
