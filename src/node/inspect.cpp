#include "batchrpc/node/inspect.hpp"

#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "batchrpc/node/node_access.hpp"
#include "batchrpc/rref/object_names.hpp"
#include "call/function_table.hpp"
#include "node/node_core.hpp"
#include "rref/rref_parts.hpp"

namespace batchrpc {

std::vector<std::string> exposed_functions(const Node& node) {
  std::vector<std::string> shown;
  for (const std::string& name : detail::NodeAccess::core(node)->functions().names()) {
    const bool of_program =
        !name.starts_with(kReservedPrefix) ||
        std::any_of(detail::kShownPrefixes.begin(), detail::kShownPrefixes.end(),
                    [&](auto prefix) { return name.starts_with(prefix); });
    if (of_program) shown.emplace_back(shown_name(name));
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

std::string function_schema(const Node& node, std::string_view name) {
  NodeCore& core = *detail::NodeAccess::core(node);
  const FunctionTable& functions = core.functions();
  if (const auto function = functions.find(name)) return function->schema();
  for (const std::string_view prefix : detail::kShownPrefixes) {
    if (const auto function = functions.find(std::string(prefix).append(name))) {
      return function->schema();
    }
  }
  const std::string near = functions.suggest(name, exposed_functions(node));
  throw NotFound("no function '" + std::string(name) + "' is exposed on " + core.name() +
                 (near.empty() ? "" : "; " + near));
}

RRefReport rref_report(const Node& node) {
  return detail::report(*detail::NodeAccess::core(node)->extension<detail::RrefParts>());
}

}  // namespace batchrpc
