// parameter_cannot_be_sent<1, Money>
#include "batchrpc/batchrpc.hpp"

class Money {
 public:
  [[nodiscard]] int cents() const { return cents_; }

 private:
  int cents_ = 0;
};

void refused(const batchrpc::Node& node) {
  node.expose("pay", [](const Money& money) { return money.cents(); });
}
