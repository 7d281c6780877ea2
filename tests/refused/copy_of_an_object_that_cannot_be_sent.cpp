// result_cannot_be_sent<Table>
#include "batchrpc/batchrpc.hpp"

class Table {
 public:
  [[nodiscard]] int rows() const { return rows_; }

 private:
  int rows_ = 0;
};

void refused(const batchrpc::RRef<Table>& table) { table.to_here().get(); }
