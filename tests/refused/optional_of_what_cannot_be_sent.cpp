// parameter_cannot_be_sent<1, std::optional<Link> >
#include <optional>

#include "batchrpc/batchrpc.hpp"

struct Link {
  int* next;
};

void refused(const batchrpc::Node& node) {
  node.expose("follow", [](const std::optional<Link>& link) { return *link->next; });
}
