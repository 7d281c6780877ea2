// argument_does_not_convert<1, const char (&)[4], int>
#include "batchrpc/batchrpc.hpp"

int note(int n);

void refused(const batchrpc::Node& node) { node.each({"b", "c"}).call<&note>("two"); }
