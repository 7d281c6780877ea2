// each() takes a range of peers; use peer() for one peer
#include <string>

#include "batchrpc/batchrpc.hpp"

void refused(const batchrpc::Node& node) { (void)node.each(std::string("worker1")); }
