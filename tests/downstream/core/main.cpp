#include <iostream>

#include <batchrpc/base/version.hpp>

int main() { std::cout << "batchrpc " << batchrpc::version() << "\n"; }
