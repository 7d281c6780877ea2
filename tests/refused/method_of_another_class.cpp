// method_of_another_class<
#include "batchrpc/batchrpc.hpp"

struct Store {};
struct Table {
  int rows() { return 1; }
};

void refused(const batchrpc::RRef<Store>& store) { store.call<&Table::rows>(); }
