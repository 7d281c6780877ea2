// takes a range of peers
#include <string>

#include "batchrpc/batchrpc.hpp"

void refused(const batchrpc::Node& node) { (void)node.each(std::string("worker1")); }
