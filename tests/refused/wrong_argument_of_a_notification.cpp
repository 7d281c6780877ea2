// argument_does_not_convert<1, const char (&)[4], int>
#include "batchrpc/batchrpc.hpp"

void note(int n);

void refused(const batchrpc::Node& node) { node.peer("b").notify<&note>("two"); }
