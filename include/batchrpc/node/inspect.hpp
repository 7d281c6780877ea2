#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/rref/rref_report.hpp"

/// What a node has exposed and holds; for people and tests. Throws InvalidArgument for a moved-from
/// node. Thread-safe.
namespace batchrpc {

class Node;

/// Returns the names of the exposed functions, methods and classes, sorted.
[[nodiscard]] BATCHRPC_EXPORT std::vector<std::string> exposed_functions(const Node& node);

/// Returns the Cap'n Proto schema of an exposed function: its arguments (struct Arguments) and its
/// result (struct Result), for `capnp decode`. The first argument of a method behind RRefs is the
/// object's id. A class has the schema of its constructor, whose first argument is the object's id,
/// too. Throws NotFound.
[[nodiscard]] BATCHRPC_EXPORT std::string function_schema(const Node& node, std::string_view name);

/// Returns the objects that this node owns, with their holders, and whose objects it holds. Its
/// time grows with the number of objects.
[[nodiscard]] BATCHRPC_EXPORT RRefReport rref_report(const Node& node);

}  // namespace batchrpc
