#include "batchrpc/torch/ivalue.hpp"

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace ivalue_test {

using c10::IValue;
using Catch::Matchers::Contains;
using torch_test::identical;
using torch_test::message_of;
using torch_test::round_trip;
using torch_test::send;

c10::impl::GenericList list_of(const c10::TypePtr& type, const std::vector<IValue>& values) {
  c10::impl::GenericList list(type);
  for (const IValue& value : values)
    list.push_back(value);
  return list;
}

TEST_CASE("scalars, text and tensors come back as they were sent", "[ivalue]") {
  CHECK(round_trip(IValue()).isNone());
  CHECK(round_trip(IValue(true)).toBool());
  CHECK(round_trip(IValue(std::int64_t{-7})).toInt() == -7);
  CHECK(round_trip(IValue(1.5)).toDouble() == 1.5);
  CHECK(round_trip(IValue("text")).toStringRef() == "text");
  CHECK(round_trip(IValue(c10::complex<double>(1, 2))).toComplexDouble() ==
        c10::complex<double>(1, 2));
  const at::Tensor tensor = at::rand({2, 3});
  CHECK(identical(round_trip(IValue(tensor)).toTensor(), tensor));
  CHECK_FALSE(round_trip(IValue(at::Tensor())).toTensor().defined());
}

TEST_CASE("lists keep their elements' type, also when empty", "[ivalue]") {
  CHECK(round_trip(IValue(std::vector<std::int64_t>{1, 2})).toIntVector() ==
        std::vector<std::int64_t>{1, 2});
  CHECK(round_trip(IValue(std::vector<double>{1.5})).toDoubleVector() == std::vector<double>{1.5});
  CHECK(round_trip(IValue(c10::List<bool>({true, false}))).toBoolList().get(0));
  CHECK(round_trip(IValue(std::vector<at::Tensor>{at::ones({2})})).toTensorVector().size() == 1);
  CHECK(round_trip(IValue(std::vector<std::string>{"a", "b"})).toListRef()[1].toStringRef() == "b");

  for (const c10::TypePtr& type : std::vector<c10::TypePtr>{
           c10::IntType::get(), c10::FloatType::get(), c10::BoolType::get(), c10::StringType::get(),
           c10::TensorType::get(), c10::AnyType::get(), c10::ComplexType::get(),
           c10::NoneType::get(), c10::NumberType::get(),
           c10::ListType::create(c10::OptionalType::create(c10::TensorType::get())),
           c10::DictType::create(c10::StringType::get(), c10::IntType::get()),
           c10::TupleType::create({c10::IntType::get(), c10::StringType::get()})}) {
    INFO(type->str());
    const IValue came = round_trip(IValue(list_of(type, {})));
    REQUIRE(came.isList());
    CHECK(*came.toList().elementType() == *type);
  }
}

TEST_CASE("tuples, dicts and mixtures come back as they were sent", "[ivalue]") {
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("w", at::ones({2}));
  dict.insert("b", at::zeros({3}));
  const IValue came = round_trip(IValue(c10::ivalue::Tuple::create(
      {IValue(7), IValue(dict),
       IValue(list_of(c10::AnyType::get(), {IValue(), IValue("x"), IValue(2.5)})),
       IValue(c10::ivalue::Tuple::create(std::vector<IValue>{}))})));
  const auto& elements = came.toTupleRef().elements();
  REQUIRE(elements.size() == 4);
  CHECK(elements[0].toInt() == 7);
  const auto came_dict = elements[1].to<c10::Dict<std::string, at::Tensor>>();
  CHECK(came_dict.size() == 2);
  CHECK(identical(came_dict.at("w"), at::ones({2})));
  CHECK(elements[1].toGenericDict().valueType()->kind() == c10::TypeKind::TensorType);
  CHECK(elements[2].toListRef()[1].toStringRef() == "x");
  CHECK(elements[3].toTupleRef().elements().empty());
}

IValue nested(unsigned levels, bool as_dict) {
  IValue value(std::int64_t{1});
  for (unsigned i = 0; i < levels; ++i) {
    if (as_dict) {
      c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
      dict.insert(IValue("k"), value);
      value = dict;
    } else {
      value = list_of(c10::AnyType::get(), {value});
    }
  }
  return value;
}

TEST_CASE("values nest as deep as the limit and no deeper", "[ivalue]") {
  for (const bool as_dict : {false, true}) {
    CHECK(round_trip(nested(detail::kMaxIValueNesting, as_dict)).type() != nullptr);
    CHECK_THAT(
        message_of<InvalidArgument>([&] { send(nested(detail::kMaxIValueNesting + 1, as_dict)); }),
        Contains("deeper than 16"));
  }
  auto endless = list_of(c10::AnyType::get(), {});
  endless.push_back(IValue(endless));
  CHECK_THROWS_AS(send(IValue(endless)), InvalidArgument);
  endless.clear();
}

TEST_CASE("what is not data is refused by name", "[ivalue]") {
  const auto refusal = [](const IValue& value) {
    return message_of<InvalidArgument>([&] { send(value); });
  };
  CHECK_THAT(refusal(IValue(c10::Device(c10::kCPU))),
             Contains("Device") && Contains("allowed are None"));
  CHECK_THAT(refusal(IValue(c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get()))),
             Contains("Future"));
  CHECK_THAT(refusal(IValue(list_of(c10::AnyType::get(), {IValue(c10::Device(c10::kCPU))}))),
             Contains("Device"));
  CHECK_THAT(refusal(IValue(list_of(c10::DeviceObjType::get(), {}))), Contains("Device"));
  c10::Dict<at::Tensor, int64_t> by_tensor;
  CHECK_THAT(refusal(IValue(by_tensor)), Contains("keys of type Tensor"));
  const auto named = c10::TupleType::createNamed(
      c10::QualifiedName("Point"), std::vector<std::string>{"x"}, {c10::IntType::get()});
  CHECK_THAT(refusal(IValue(c10::ivalue::Tuple::createNamed({IValue(1)}, named))),
             Contains("named tuple"));
}

using Wire = Codec<IValue>::Wire;

TEST_CASE("elements that are not of the claimed type are a BadMessage", "[ivalue]") {
  using detail::ElementKind;
  using detail::ElementType;
  const auto refusal = [](const Wire& wire) {
    return message_of<BadMessage>([&] { send(wire).decode<IValue>(); });
  };
  CHECK_THAT(refusal(detail::IValueList{{ElementKind::string, {}}, {IValue(1)}}),
             Contains("int") && Contains("in a container of str"));
  CHECK_THAT(refusal(detail::IValueList{{ElementKind::tensor, {}}, {IValue(1)}}),
             Contains("in a container of Tensor"));
  CHECK_THAT(refusal(detail::IValueList{{ElementKind::list, {{ElementKind::integer, {}}}},
                                        {IValue(std::vector<double>{1})}}),
             Contains("in a container of int[]"));
  CHECK_THAT(refusal(detail::IValueList{{ElementKind::list, {}}, {}}), Contains("missing parts"));
  CHECK_THAT(refusal(detail::IValueList{{static_cast<ElementKind>(99), {}}, {}}),
             Contains("unknown type 99"));
  CHECK_THAT(refusal(detail::IValueDict{{ElementKind::tensor, {}}, {}, {}}),
             Contains("a key type that is not allowed"));
  CHECK_THAT(refusal(detail::IValueDict{
                 {ElementKind::integer, {}}, {ElementKind::any, {}}, {{IValue("k"), IValue(1)}}}),
             Contains("in a container of int"));
  CHECK_THAT(refusal(detail::IValueDict{{ElementKind::integer, {}},
                                        {ElementKind::any, {}},
                                        {{IValue(1), IValue(1)}, {IValue(1), IValue(2)}}}),
             Contains("duplicate key"));
}

TEST_CASE("ten thousand mutated messages end in a value or a BadMessage", "[ivalue]") {
  std::mt19937_64 random(11);
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("w", at::ones({2}));
  const IValue value(c10::ivalue::Tuple::create(
      {IValue(7), IValue(dict), IValue(list_of(c10::StringType::get(), {IValue("x")})),
       IValue(std::vector<double>{1, 2}), nested(3, false)}));
  const auto message = send(value);
  int values = 0;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto mutated = message;
    for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      mutated.words[random() % mutated.words.size()] ^= Word{1} << (random() % 64);
    }
    try {
      (void)mutated.decode<IValue>();
      ++values;
    } catch (const BadMessage&) {
      ++refused;
    }
  }
  CHECK(values > 100);
  CHECK(refused > 100);
}

TEST_CASE("a remote function takes and returns IValues", "[ivalue]") {
  CHECK(signature<IValue, IValue, at::Tensor>() == "ivalue(ivalue,tensor)");
  const test::VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  b.expose("swap", [](const IValue& pair) {
    const auto& elements = pair.toTupleRef().elements();
    return IValue(c10::ivalue::Tuple::create({elements[1], elements[0]}));
  });
  const IValue came =
      a.call<IValue(IValue)>("b", "swap",
                             IValue(c10::ivalue::Tuple::create({IValue(1), IValue("one")})))
          .get();
  CHECK(came.toTupleRef().elements()[0].toStringRef() == "one");
  CHECK_THROWS_AS(a.call<IValue(IValue)>("b", "swap", IValue(c10::Device(c10::kCPU))).get(),
                  InvalidArgument);
  CHECK_THAT(function_schema(b, "swap"), Contains("struct Ivalue"));
}

}  // namespace ivalue_test
}  // namespace batchrpc
