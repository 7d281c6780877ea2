#pragma once

#include <memory>
#include <string>

#include "batchrpc/transport/stream.hpp"
#include "transport/descriptor.hpp"
#include "transport/loop_core.hpp"

namespace batchrpc::detail {

/// A connected socket.
class SocketStream final : public Stream {
 public:
  /// `peer`: for messages. `place` is kept until the descriptor is closed.
  SocketStream(std::shared_ptr<LoopCore> core, std::shared_ptr<Descriptor> descriptor,
               std::string peer, std::shared_ptr<void> place = nullptr,
               std::shared_ptr<const PeerProof> proof = nullptr);
  ~SocketStream() override;

  IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept override;
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override;
  void wait_readable(Task handler) override;
  void wait_writable(Task handler) override;
  void shutdown() noexcept override;
  [[nodiscard]] std::size_t unconfirmed_bytes() const noexcept override;
  [[nodiscard]] std::shared_ptr<const PeerProof> proof() const override { return proof_; }
  [[nodiscard]] std::string description() const override { return peer_; }
  [[nodiscard]] Address local_address() const override;

 private:
  const std::shared_ptr<LoopCore> core_;  // outlives the descriptor
  const std::shared_ptr<Descriptor> descriptor_;
  const int fd_;
  const std::string peer_;
  const std::shared_ptr<void> place_;
  const std::shared_ptr<const PeerProof> proof_;
};

}  // namespace batchrpc::detail
