// parameter_cannot_be_sent<1, std::variant<int, Link> >
#include <variant>

#include "batchrpc/batchrpc.hpp"

struct Link {
  int* next;
};

void refused(const batchrpc::Node& node) {
  node.expose("follow", [](const std::variant<int, Link>& link) { return link.index(); });
}
