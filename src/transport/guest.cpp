#include "transport/guest.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>

namespace batchrpc::detail {
namespace {

/// The turn of a context, with which it ends.
class TurnOfContext final : public asio::execution_context::service {
 public:
  using key_type = TurnOfContext;
  inline static asio::execution_context::id id;

  explicit TurnOfContext(asio::execution_context& context)
      : service(context),
        turn(std::make_shared<Turn>([&io = static_cast<asio::io_context&>(context)](Task task) {
          asio::post(io, std::move(task));
        })) {}

  const std::shared_ptr<Turn> turn;

 private:
  void shutdown() override { turn->clear(); }
};

}  // namespace

Guest::Guest(asio::io_context& io) : turn_(asio::use_service<TurnOfContext>(io).turn) {}

}  // namespace batchrpc::detail
