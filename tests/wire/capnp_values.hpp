#pragma once

#include <string_view>

#include "wire/capnp_schema.hpp"
#include "wire/values.hpp"

/// C++ values beside Cap'n Proto's dynamic ones: comparing and writing, without the codec.
namespace batchrpc::wire_test {

/// Whether Cap'n Proto reads `value` from what the codec wrote.
template <class T>
bool matches(const T& value, const capnp::DynamicValue::Reader& read,
             const std::vector<Bytes>& payloads) {
  const auto all_match = [&](const auto& range) {
    const auto list = read.as<capnp::DynamicList>();
    if (list.size() != std::size(range)) return false;
    capnp::uint i = 0;
    for (const auto& element : range) {
      using Element = std::remove_cvref_t<decltype(element)>;
      if (!matches<Element>(element, list[i++], payloads)) return false;
    }
    return true;
  };
  // The fields of a struct, in order.
  const auto fields_match = [&](const auto&... part) {
    const auto structure = read.as<capnp::DynamicStruct>();
    const auto fields = structure.getSchema().getFields();
    [[maybe_unused]] capnp::uint i = 0;
    return fields.size() == sizeof...(part) &&
           (matches(part, structure.get(fields[i++]), payloads) && ...);
  };

  if constexpr (std::is_same_v<T, bool>) {
    return read.as<bool>() == value;
  } else if constexpr (std::is_enum_v<T>) {
    return matches(static_cast<std::underlying_type_t<T>>(value), read, payloads);
  } else if constexpr (std::is_same_v<T, float>) {
    return identical(read.as<float>(), value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return identical(read.as<double>(), value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    // Of the very type, not only of the same value.
    constexpr bool is_signed = std::is_signed_v<T>;
    return read.getType() == (is_signed ? capnp::DynamicValue::INT : capnp::DynamicValue::UINT) &&
           read.as<std::conditional_t<is_signed, std::int64_t, std::uint64_t>>() ==
               static_cast<std::conditional_t<is_signed, std::int64_t, std::uint64_t>>(value);
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    return read.getType() == capnp::DynamicValue::VOID;
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto text = read.as<capnp::Text>();
    return std::string_view(text.begin(), text.size()) == value;
  } else if constexpr (std::is_same_v<T, Celsius>) {
    return matches(value.degrees(), read, payloads);
  } else if constexpr (ByteSequence<T>) {
    const auto structure = read.as<capnp::DynamicStruct>();
    if (structure.get("size").as<std::uint64_t>() != value.size()) return false;
    if (value.size() > 16 * 1024) {
      const Bytes& payload = payloads.at(structure.get("payload").as<std::uint32_t>());
      return payload.size() == value.size() &&
             std::memcmp(payload.data(), value.data(), value.size()) == 0;
    }
    const auto data = structure.get("inline").as<capnp::Data>();
    return data.size() == value.size() &&
           (value.empty() || std::memcmp(data.begin(), value.data(), value.size()) == 0);
  } else if constexpr (TimeSpan<T>) {
    using Count =
        std::conditional_t<std::is_floating_point_v<typename T::rep>, double, std::int64_t>;
    return matches(static_cast<Count>(value.count()), read, payloads);
  } else if constexpr (TimePointLike<T>) {
    return matches(value.time_since_epoch(), read, payloads);
  } else if constexpr (IsOption<T>::value) {
    const auto structure = read.as<capnp::DynamicStruct>();
    if (structure.getSchema().getUnionFields().size() != 2) return false;
    const auto which = KJ_ASSERT_NONNULL(structure.which());
    if (!value) return which.getProto().getName() == "none";
    return which.getProto().getName() == "some" && matches(*value, structure.get(which), payloads);
  } else if constexpr (IsVariant<T>::value) {
    const auto structure = read.as<capnp::DynamicStruct>();
    const auto field = structure.getSchema().getFields()[static_cast<capnp::uint>(value.index())];
    if (std::variant_size_v < T >> 1 && KJ_ASSERT_NONNULL(structure.which()) != field) return false;
    return std::visit(
        [&](const auto& alternative) {
          return matches(alternative, structure.get(field), payloads);
        },
        value);
  } else if constexpr (IsTuple<T>::value) {
    return std::apply([&](const auto&... part) { return fields_match(part...); }, value);
  } else if constexpr (detail::Map<T>) {
    const auto list = read.as<capnp::DynamicList>();
    if (list.size() != value.size()) return false;
    capnp::uint i = 0;
    for (const auto& [key, mapped] : value) {
      const auto entry = list[i++].as<capnp::DynamicStruct>();
      if (!matches(key, entry.get("key"), payloads)) return false;
      if (!matches(mapped, entry.get("value"), payloads)) return false;
    }
    return true;
  } else if constexpr (std::is_array_v<T> || IsArray<T>::value || detail::Sequence<T> ||
                       detail::Set<T>) {
    return all_match(value);
  } else {
    return detail::visit_members(
        value, [&](auto, const auto&... member) { return fields_match(member...); });
  }
}

/// Where Cap'n Proto's builder writes a value: a field, or an element.
class Place {
 public:
  Place(capnp::DynamicStruct::Builder structure, capnp::StructSchema::Field field)
      : structure_(structure), field_(field) {}
  Place(capnp::DynamicList::Builder list, capnp::uint index) : list_(list), index_(index) {}

  bool is_element() const { return field_ == nullptr; }
  void set(const capnp::DynamicValue::Reader& value) {
    KJ_IF_MAYBE (field, field_) {
      structure_.set(*field, value);
    } else {
      list_.set(index_, value);
    }
  }
  capnp::DynamicList::Builder list(std::size_t size) {
    const auto n = static_cast<capnp::uint>(size);
    KJ_IF_MAYBE (field, field_) {
      return structure_.init(*field, n).as<capnp::DynamicList>();
    }
    return list_.init(index_, n).as<capnp::DynamicList>();
  }
  capnp::DynamicStruct::Builder structure() {
    KJ_IF_MAYBE (field, field_) {
      return structure_.init(*field).as<capnp::DynamicStruct>();
    }
    return list_[index_].as<capnp::DynamicStruct>();
  }

 private:
  capnp::DynamicStruct::Builder structure_;
  kj::Maybe<capnp::StructSchema::Field> field_;
  capnp::DynamicList::Builder list_;
  capnp::uint index_ = 0;
};

/// Has Cap'n Proto write `value`; large bytes go to `payloads`.
template <class T>
void put(const T& value, Place place, std::vector<Bytes>& payloads) {
  const auto put_fields = [&](const auto&... part) {
    const auto structure = place.structure();
    const auto fields = structure.getSchema().getFields();
    [[maybe_unused]] capnp::uint i = 0;
    (put(part, Place(structure, fields[i++]), payloads), ...);
  };
  if constexpr (std::is_same_v<T, bool>) {
    place.set(value);
  } else if constexpr (std::is_enum_v<T>) {
    put(static_cast<std::underlying_type_t<T>>(value), place, payloads);
  } else if constexpr (std::is_same_v<T, float>) {
    place.set(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    place.set(static_cast<double>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, long, unsigned long>;
    place.set(static_cast<Wide>(value));
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    place.set(capnp::VOID);
  } else if constexpr (std::is_same_v<T, std::string>) {
    place.set(capnp::Text::Reader(value.c_str(), value.size()));
  } else if constexpr (std::is_same_v<T, Celsius>) {
    put(value.degrees(), place, payloads);
  } else if constexpr (ByteSequence<T>) {
    auto structure = place.structure();
    structure.set("size", static_cast<unsigned long>(value.size()));
    if (value.size() > 16 * 1024) {
      structure.set("payload", static_cast<unsigned>(payloads.size()));
      payloads.push_back(Bytes::copy({value.data(), value.size()}));
    } else {
      const auto* const data = reinterpret_cast<const kj::byte*>(value.data());
      structure.set("inline", capnp::Data::Reader(data, value.size()));
    }
  } else if constexpr (TimeSpan<T>) {
    using Count =
        std::conditional_t<std::is_floating_point_v<typename T::rep>, double, std::int64_t>;
    put(static_cast<Count>(value.count()), place, payloads);
  } else if constexpr (TimePointLike<T>) {
    put(value.time_since_epoch(), place, payloads);
  } else if constexpr (IsOption<T>::value) {
    auto structure = place.structure();
    const auto fields = structure.getSchema().getFields();
    if (value) {
      put(*value, Place(structure, fields[1]), payloads);
    } else {
      structure.set(fields[0], capnp::VOID);
    }
  } else if constexpr (IsVariant<T>::value) {
    auto structure = place.structure();
    const auto field = structure.getSchema().getFields()[static_cast<capnp::uint>(value.index())];
    std::visit(
        [&](const auto& alternative) { put(alternative, Place(structure, field), payloads); },
        value);
  } else if constexpr (IsTuple<T>::value) {
    std::apply(put_fields, value);
  } else if constexpr (detail::Map<T>) {
    auto list = place.list(value.size());
    capnp::uint i = 0;
    for (const auto& [key, mapped] : value) {
      const auto entry = list[i++].template as<capnp::DynamicStruct>();
      put(key, Place(entry, entry.getSchema().getFieldByName("key")), payloads);
      put(mapped, Place(entry, entry.getSchema().getFieldByName("value")), payloads);
    }
  } else if constexpr (std::is_array_v<T> || IsArray<T>::value || detail::Sequence<T> ||
                       detail::Set<T>) {
    auto list = place.list(std::size(value));
    capnp::uint i = 0;
    for (const auto& element : value) {
      using Element = std::remove_cvref_t<decltype(element)>;
      put<Element>(element, Place(list, i++), payloads);
    }
  } else {
    detail::visit_members(value, [&](auto, const auto&... member) { put_fields(member...); });
  }
}

}  // namespace batchrpc::wire_test
