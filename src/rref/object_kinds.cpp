#include "rref/object_kinds.hpp"

#include "batchrpc/rref/object_names.hpp"
#include "batchrpc/wire/codec.hpp"
#include "batchrpc/wire/envelope.hpp"

namespace batchrpc::detail {
namespace {

constexpr std::string_view kObjectId = "{u64,u64,u64,u64}";

// Calls of one object start in order; its id is the first argument.
std::optional<OrderingKey> object_of_call(Decoder& arguments) {
  return std::get<0>(decode_struct<OrderingKey>(arguments, wire::kBodyPointer - 1));
}

constexpr std::string_view kNoClass =
    "call expose_class or expose_factory there before you create or copy an object";

constexpr FunctionKind kKinds[] = {
    {.prefix = kMethodPrefix,
     .own_parameter = kObjectId,
     .own_parameters = 1,
     .ordering_key = object_of_call,
     .noun = "method",
     .used_as = "as a method of an object: call it on an RRef",
     .is_ordinary = "as a function: call it on the node, not on an RRef"},
    {.prefix = kCreatePrefix,
     .own_parameter = kObjectId,
     .own_parameters = 1,
     .ordering_key = object_of_call,
     .noun = "class or factory",
     .described = "the constructor of ",
     .if_missing = kNoClass,
     .suggests = false,
     .if_signature_differs = "call create<T(types)>() with the types given to expose_class"},
    {.prefix = kValuePrefix,
     .own_parameter = kObjectId,
     .own_parameters = 1,
     .ordering_key = object_of_call,
     .noun = "class or factory",
     .if_missing = kNoClass,
     .suggests = false},
    {.prefix = kOpenPrefix,
     .own_parameter = kObjectId,
     .own_parameters = 2,
     .ordering_key = object_of_call,
     .noun = "factory",
     .if_missing = "call expose_factory there before you create an object with it"},
    {.prefix = kReady,
     .shown = kShownReady,
     .own_parameter = kObjectId,
     .own_parameters = 1,
     .ordering_key = object_of_call},
};

}  // namespace

std::span<const FunctionKind> object_kinds() noexcept { return kKinds; }

}  // namespace batchrpc::detail
