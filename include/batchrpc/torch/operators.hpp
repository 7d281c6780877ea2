#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/torch/ivalue.hpp"

/// LibTorch's operators as remote functions, called by name; see docs/operators.md.
namespace batchrpc {

/// Arguments of an operator by name, as the last argument of a call:
///
///     using Tensor = at::Tensor;
///     peer.call<Tensor(Tensor, Tensor, Keywords)>("node", "aten::add", a, b, Keywords{{"alpha",
///     2}});
///
/// The names are those of LibTorch's schemas. Those that are left out have their defaults. A name
/// that no schema has, or whose argument was also given by position, is an InvalidArgument. Of a
/// name that is there twice, the first value counts, as in each std::map.
using Keywords = std::map<std::string, c10::IValue>;

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
/// Some calls are refused before they run: integer divisions that would end the process, groups of
/// zero channels, and, for the operators of expose_all_operators(), sparse arguments and results
/// larger than NodeLimits::max_payload_bytes. Operators beyond those are not written for hostile
/// callers.
///
/// Throws NotFound, with similar names, if there is no such operator, and InvalidArgument if a name
/// is exposed already. In both cases nothing is exposed. Node::unexpose(name) removes one.
BATCHRPC_EXPORT void expose_operators(const Node& node, const std::vector<std::string>& names,
                                      const ExposeOptions& options = {});

/// The same for all operators of a reviewed list that are not exposed yet: arithmetic, comparisons,
/// activations, reductions, products of matrices, changes of shape, and the creation of tensors
/// (docs/operators.md has the list). Overloads that write to an argument are left out. Use
/// expose_operators() for any other.
///
/// A call may still take a worker for as long as its arguments ask for, and memory of a few times
/// NodeLimits::max_payload_bytes.
BATCHRPC_EXPORT void expose_all_operators(const Node& node, const ExposeOptions& options = {});

}  // namespace batchrpc
