#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/wire/codec.hpp"

/// Arguments and results whose types are known only at run time, from the text of a signature
/// (docs/wire.md).
namespace batchrpc::detail {

/// How a field of a type is read and written that an IValue can hold.
struct RuntimeEncoding {
  Slot slot = Slot::none;
  /// Reads undefined tensors as None. Throws BadMessage, or InvalidArgument for a number that does
  /// not fit a signed 64-bit integer.
  c10::IValue (*read)(Decoder& decoder, const StructView& view, std::uint32_t offset) = nullptr;
  /// Throws InvalidArgument for a value of another type or range.
  void (*write)(Encoder& encoder, std::size_t place, std::size_t data_words, std::uint32_t offset,
                const c10::IValue& value) = nullptr;
  /// Whether values of that TorchScript type can be written.
  bool (*holds)(const c10::Type& type) = nullptr;
  /// One sample of each kind of value that may be read; nothing if any may be.
  std::optional<std::vector<c10::IValue>> (*samples)() = nullptr;
  /// Of Keywords, which are read as a dict from strings to any values.
  bool is_keywords = false;
};

/// Finds a type by its text in signatures, such as `tensor`, `[i64]`, `f32?`; null if there is
/// none.
[[nodiscard]] const RuntimeEncoding* find_encoding(std::string_view text);

/// A list of `values`, whose elements have `type`; where a tensor is None, optional tensors.
[[nodiscard]] c10::IValue list_of(const c10::TypePtr& type, std::vector<c10::IValue> values);

/// Structs whose fields are of such types.
class RuntimeStruct {
 public:
  struct Field {
    const RuntimeEncoding* type = nullptr;
    std::optional<std::uint64_t> length{};  ///< of an array
    std::uint32_t offset = 0;
  };
  static constexpr std::size_t kMostFields = 64;

  RuntimeStruct() = default;
  explicit RuntimeStruct(std::vector<Field> fields);

  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
  [[nodiscard]] std::vector<c10::IValue> read(Decoder& decoder, PointerRef pointer) const;
  /// `values` must have as many elements as there are fields.
  void write(Encoder& encoder, std::size_t pointer, c10::ArrayRef<c10::IValue> values) const;

 private:
  std::vector<Field> fields_;
  StructSize size_;
};

}  // namespace batchrpc::detail
