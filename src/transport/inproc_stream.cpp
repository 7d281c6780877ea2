#include <utility>

#include "transport/inproc_connection.hpp"

namespace batchrpc::detail {
namespace {

class InprocStream final : public Stream {
 public:
  InprocStream(std::shared_ptr<InprocConnection> connection, int side, std::string description)
      : connection_(std::move(connection)), side_(side), description_(std::move(description)) {}
  ~InprocStream() override { connection_->close(side_); }

  IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept override {
    return connection_->read(side_, buffers);
  }
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override {
    return connection_->write(side_, buffers);
  }
  void wait_readable(Task handler) override {
    connection_->wait_readable(side_, std::move(handler));
  }
  void wait_writable(Task handler) override {
    connection_->wait_writable(side_, std::move(handler));
  }
  void shutdown() noexcept override { connection_->shutdown(side_); }
  [[nodiscard]] std::string description() const override { return description_; }
  [[nodiscard]] Address local_address() const override {
    const std::string& host = connection_->host(side_);
    return Address::parse("inproc://" + (host.empty() ? "-" : host));
  }

 private:
  const std::shared_ptr<InprocConnection> connection_;
  const int side_;
  const std::string description_;
};

}  // namespace

std::unique_ptr<Stream> make_inproc_stream(std::shared_ptr<InprocConnection> connection, int side,
                                           std::string description) {
  return std::make_unique<InprocStream>(std::move(connection), side, std::move(description));
}

}  // namespace batchrpc::detail
