#pragma once

#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/node/node.hpp"

/// LibTorch's operators as remote functions, by their names: docs/operators.md.
namespace batchrpc {

/// Lets peers call these operators, of any namespace. A name stands for all of the operator's
/// overloads, "aten::add", or for one, "aten::add.Tensor":
///
///     batchrpc::expose_operators(node, {"aten::add", "aten::max"});
///     at::Tensor sum = peer.call<at::Tensor(at::Tensor, at::Tensor)>("node", "aten::add", a, b);
///
/// Which overload a call means follows from its arguments, and is checked against the schemas of
/// LibTorch: BadSignature or InvalidArgument list them. Operators run where functions run, with
/// `options`, without autograd; what one throws is a RemoteError with LibTorch's text.
///
/// Throws NotFound for a name that no operator has, with near ones, and InvalidArgument for one
/// that is exposed already; then none is exposed. Node::unexpose(name) takes one back.
BATCHRPC_EXPORT void expose_operators(const Node& node, const std::vector<std::string>& names,
                                      const ExposeOptions& options = {});

/// The same for all `aten::` operators that are not exposed yet, but those that are known to trust
/// their arguments (names that begin with an underscore or have `_backward` in them, and some
/// more, docs/operators.md), those that return memory as they find it (`empty`, `resize_`,
/// `set_` and the like), and `from_file`.
///
/// For peers that you trust as yourself. LibTorch's operators are not written for hostile callers,
/// and nobody has shown of those that remain that no argument makes them read or write beyond their
/// tensors; and one call may take as much time and memory as it likes.
BATCHRPC_EXPORT void expose_all_operators(const Node& node, const ExposeOptions& options = {});

}  // namespace batchrpc
