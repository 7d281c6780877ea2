#pragma once

#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/torch/tensor.hpp"

namespace torch_test {

/// Bytes at random, of any type: at::rand knows only some.
inline at::Tensor random_tensor(std::vector<std::int64_t> sizes, at::ScalarType type,
                                unsigned seed = 1) {
  std::mt19937 random(seed);
  at::Tensor tensor = at::empty(sizes, type);
  auto* const bytes = static_cast<unsigned char*>(tensor.data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(type == at::kBool ? random() % 2 : random());
  }
  return tensor;
}

/// Of the same type and sizes, and the same bit by bit.
inline bool identical(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  if (a.numel() == 0) return true;
  const auto dense = [](const at::Tensor& t) {
    return t.detach().resolve_conj().resolve_neg().contiguous();
  };
  return std::memcmp(dense(a).data_ptr(), dense(b).data_ptr(), a.nbytes()) == 0;
}

/// A message with its payloads, as it lies at the receiver: in memory of its own.
struct Message {
  std::vector<batchrpc::Word> words;
  std::vector<batchrpc::Bytes> payloads;

  template <class... T>
  std::tuple<T...> decode() const {
    batchrpc::Decoder decoder(words, payloads);
    return batchrpc::decode_struct<T...>(decoder, 0);
  }
};

template <class... T>
Message send(const T&... values) {
  batchrpc::Encoder encoder(1);
  batchrpc::encode_struct<T...>(encoder, 0, values...);
  Message message{encoder.words(), {}};
  for (const batchrpc::Bytes& payload : encoder.payloads())
    message.payloads.push_back(batchrpc::Bytes::copy(payload.span()));
  return message;
}

template <class T>
T round_trip(const T& value) {
  return std::get<0>(send(value).template decode<T>());
}

/// What `f` throws, as text.
template <class E = batchrpc::Error, class F>
std::string message_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace torch_test
