#include "batchrpc/torch/operators.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/function_family.hpp"
#include "batchrpc/node/inspect.hpp"
#include "call/local_node.hpp"
#include "torch/operator_guard.hpp"
#include "torch/operator_list.hpp"
#include "torch/operator_overloads.hpp"
#include "torch/parsed_signature.hpp"

namespace batchrpc {
namespace detail {
namespace {

using c10::IValue;

// An operator, called with one signature.
class OperatorFunction final : public ExposedFunction {
 public:
  OperatorFunction(const std::string& operator_name, std::string_view called_as,
                   const ExposeOptions& how, ParsedSignature parsed, OperatorOverloads overloads,
                   std::uint64_t most_bytes)
      : ExposedFunction(operator_name, std::string(called_as), how),
        parsed_(std::move(parsed)),
        overloads_(std::move(overloads)),
        guard_(operator_name, most_bytes) {}

  [[nodiscard]] std::string schema() const override { return overloads_.schemas(); }

  void run(RunningCall& call) noexcept override {
    bool began = false;
    try {
      call.own_payloads();
      const EncoderLease encoder;
      {
        const ContextScope scope(call.context());
        Decoder decoder = call.arguments();
        OperatorOverloads::Choice choice = choose(decoder);
        guard_.check(choice.operation->schema(), choice.stack);
        began = true;
        invoke(choice);
        if (!call.cancelled()) {
          guard_.check_results(choice.stack);
          parsed_.write_results(*encoder, wire::kBodyPointer, std::move(choice.stack));
        }
      }
      call.reply(*encoder);
    } catch (...) {
      call.fail(std::current_exception(), began);
    }
  }

 private:
  OperatorOverloads::Choice choose(Decoder& decoder) const {
    const auto values = parsed_.arguments.read(decoder, decoder.pointer(wire::kBodyPointer - 1));
    auto choice = overloads_.choose(values, parsed_.has_keywords);
    if (choice) return *std::move(choice);
    const std::string unknown =
        parsed_.has_keywords ? overloads_.unknown_keyword(values) : std::string();
    throw InvalidArgument("'" + name + "' does not accept the arguments " +
                          describe_values(values, parsed_.has_keywords) +
                          (unknown.empty() ? "" : "; it has no keyword '" + unknown + "'") +
                          "; its schemas are" + overloads_.schemas());
  }

  static void invoke(OperatorOverloads::Choice& choice) {
    // The result is sent without a graph.
    const c10::AutoGradMode no_grad(false);
    try {
      choice.operation->callBoxed(choice.stack);
    } catch (const c10::Error& error) {
      // Its what() contains this node's stack trace, which is long and must not go to a peer.
      throw std::runtime_error(error.what_without_backtrace());
    }
  }

  const ParsedSignature parsed_;
  const OperatorOverloads overloads_;
  const OperatorGuard guard_;
};

// An operator's name without that of an overload.
std::string_view operator_of(std::string_view name) { return name.substr(0, name.find('.')); }

std::string how_to_expose(std::string_view name) {
  return " (to call an operator of LibTorch, call expose_operators(node, {\"" + std::string(name) +
         "\"}) there first)";
}

constexpr FunctionKind kOperators{.prefix = "aten::", .hint = how_to_expose, .stem = operator_of};

class OperatorFamily final : public FunctionFamily {
 public:
  /// Results of calls have at most `most_bytes`.
  OperatorFamily(std::string operator_name, OperatorOverloads overloads, const ExposeOptions& how,
                 std::uint64_t most_bytes)
      : FunctionFamily(std::move(operator_name), how),
        overloads_(std::move(overloads)),
        most_bytes_(most_bytes) {}

  [[nodiscard]] std::string schema() const override {
    return "# " + name +
           " is an operator of LibTorch; call it with any signature that fits one of" +
           overloads_.schemas() + "\n";
  }
  [[nodiscard]] const FunctionKind* kind() const noexcept override { return &kOperators; }

 private:
  [[nodiscard]] std::shared_ptr<ExposedFunction> make(std::string_view called_as) const override {
    std::string why;
    try {
      ParsedSignature parsed = ParsedSignature::parse(called_as);
      OperatorOverloads fitting = overloads_.called_as(parsed);
      if (!fitting.empty()) {
        return std::make_shared<OperatorFunction>(name, called_as, options, std::move(parsed),
                                                  std::move(fitting), most_bytes_);
      }
    } catch (const BadSignature& error) {
      why = std::string(": ") + error.what();
    }
    throw BadSignature("the operator '" + name + "' cannot be called as " +
                       std::string(called_as.substr(0, kMaxParsedSignature)) + why +
                       "; its schemas are" + overloads_.schemas());
  }

  const OperatorOverloads overloads_;
  const std::uint64_t most_bytes_;
};

using Overloads = std::map<std::string, OperatorOverloads::Handles, std::less<>>;

Overloads all_overloads() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::OperatorName> names = dispatcher.getAllOpNames();
  // Puts the overload without a name first. The order is always the same.
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
  });
  Overloads overloads;
  for (const c10::OperatorName& name : names) {
    if (const auto handle = dispatcher.findSchema(name)) overloads[name.name].push_back(*handle);
  }
  return overloads;
}

OperatorOverloads::Handles find_overloads(const Overloads& all, const std::string& name) {
  const auto dot = name.find('.');
  if (const auto at = all.find(std::string_view(name).substr(0, dot)); at != all.end()) {
    if (dot == std::string::npos) return at->second;
    for (const c10::OperatorHandle& handle : at->second) {
      if (handle.operator_name().overload_name == std::string_view(name).substr(dot + 1)) {
        return {handle};
      }
    }
    throw NotFound("the operator '" + name.substr(0, dot) + "' has no overload '" +
                   name.substr(dot + 1) + "'; its schemas are" +
                   OperatorOverloads(at->second).schemas());
  }
  constexpr int kMostNear = 5;
  int count = 0;
  std::string near;
  if (name.find("::") != std::string::npos) {
    for (const c10::Symbol symbol :
         torch::jit::findSimilarOperators(c10::Symbol::fromQualString(name))) {
      if (!all.contains(std::string_view(symbol.toQualString()))) continue;
      if (++count > kMostNear) break;
      near += std::string(near.empty() ? "did you mean '" : ", '") + symbol.toQualString() + "'";
    }
  } else if (all.contains("aten::" + name)) {
    near = "did you mean 'aten::" + name + "'";
  }
  throw NotFound("this LibTorch has no operator '" + name + "'; " +
                 (near.empty() ? "names look like \"aten::add\"" : near + "?"));
}

// Returns the overloads that callers who choose the arguments may call: those that write to no
// argument. And a function of one tensor that returns many, aten::where, returns the places of its
// elements, which are larger than the tensor.
OperatorOverloads::Handles reviewed(const OperatorOverloads::Handles& handles) {
  OperatorOverloads::Handles kept;
  for (const c10::OperatorHandle& handle : handles) {
    const c10::FunctionSchema& schema = handle.schema();
    const bool finds = schema.name() == "aten::where" && schema.arguments().size() == 1;
    if (!schema.is_mutable() && !finds) kept.push_back(handle);
  }
  return kept;
}

std::uint64_t most_bytes_of_results(const Node& node) {
  return NodeAccess::local(node)->options().limits.max_payload_bytes;
}

}  // namespace
}  // namespace detail

void expose_operators(const Node& node, const std::vector<std::string>& names,
                      const ExposeOptions& options) {
  const auto all = detail::all_overloads();
  const std::vector<std::string> exposed = exposed_functions(node);
  std::set<std::string> taken(exposed.begin(), exposed.end());
  const std::uint64_t most_bytes = detail::most_bytes_of_results(node);
  std::vector<std::shared_ptr<detail::FunctionFamily>> families;
  for (const std::string& name : names) {
    if (!taken.insert(name).second) {
      throw InvalidArgument("expose_operators: '" + name + "' is already exposed, or named twice");
    }
    families.push_back(std::make_shared<detail::OperatorFamily>(
        name, detail::OperatorOverloads(detail::find_overloads(all, name)), options, most_bytes));
  }
  for (auto& family : families)
    detail::NodeAccess::expose(node, std::move(family));
}

void expose_all_operators(const Node& node, const ExposeOptions& options) {
  const std::vector<std::string> exposed = exposed_functions(node);
  const std::uint64_t most_bytes = detail::most_bytes_of_results(node);
  const detail::Overloads all = detail::all_overloads();
  for (const detail::ListedOperator& listed : detail::listed_operators()) {
    const std::string name = "aten::" + std::string(listed.name);
    const auto found = all.find(name);
    if (found == all.end() || std::binary_search(exposed.begin(), exposed.end(), name)) continue;
    detail::OperatorOverloads overloads(detail::reviewed(found->second));
    if (overloads.empty()) continue;
    detail::NodeAccess::expose(node, std::make_shared<detail::OperatorFamily>(
                                         name, std::move(overloads), options, most_bytes));
  }
}

}  // namespace batchrpc
