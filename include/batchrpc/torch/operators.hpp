#pragma once

#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/node/node.hpp"

/// LibTorch's operators as remote functions, called by name; see docs/operators.md.
namespace batchrpc {

/// Lets peers call these operators of any namespace. A name stands for all overloads of an operator
/// ("aten::add") or for one ("aten::add.Tensor"):
///
///     batchrpc::expose_operators(node, {"aten::add", "aten::max"});
///     at::Tensor sum = peer.call<at::Tensor(at::Tensor, at::Tensor)>("node", "aten::add", a, b);
///
/// The arguments of a call select the overload and are checked against LibTorch's schemas. If none
/// fits, BadSignature or InvalidArgument lists them. Operators run where functions run, with
/// `options`, without autograd. An exception of an operator is a RemoteError with LibTorch's text.
///
/// Throws NotFound, with similar names, if there is no such operator, and InvalidArgument if a name
/// is exposed already. In both cases nothing is exposed. Node::unexpose(name) removes one.
BATCHRPC_EXPORT void expose_operators(const Node& node, const std::vector<std::string>& names,
                                      const ExposeOptions& options = {});

/// The same for all `aten::` operators that are not exposed yet, except these:
/// - operators known to trust their arguments: names that begin with an underscore or contain
///   `_backward`, and some more (docs/operators.md);
/// - operators that return uninitialised memory (`empty`, `resize_`, `set_` and the like);
/// - `from_file`.
///
/// Only for peers that you trust as you trust yourself. LibTorch's operators are not written for
/// hostile callers. Nobody has shown that the remaining ones never read or write beyond their
/// tensors. One call may also take any amount of time and memory.
BATCHRPC_EXPORT void expose_all_operators(const Node& node, const ExposeOptions& options = {});

}  // namespace batchrpc
