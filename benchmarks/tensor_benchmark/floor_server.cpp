#include <optional>
#include <thread>
#include <vector>

#include "tensor_benchmark/floor.hpp"
#include "tensor_benchmark/floor_stream.hpp"
#include "tensor_benchmark/permits.hpp"

namespace tensor_benchmark {

namespace {

FloorHello receive_hello(const FloorStream& stream) {
  FloorHello hello;
  auto room = std::as_writable_bytes(std::span(&hello, 1));
  while (!room.empty())
    room = room.subspan(stream.receive(room, true));
  return hello;
}

[[noreturn]] void serve_pushes(const FloorStream& stream, const FloorHello& hello) {
  MessageRing messages(hello.bytes, together(hello.bytes, hello.window));
  const std::vector<FloorHeader> replies(hello.window);
  while (true) {
    const std::size_t count = messages.receive(stream, true);
    if (count > 0) stream.send(std::as_bytes(std::span(replies).first(count)));
  }
}

[[noreturn]] void serve_echoes_in_turn(const FloorStream& stream, const FloorHello& hello) {
  MessageRing messages(hello.bytes, 1);
  while (true) {
    if (messages.receive(stream, true) > 0) stream.send(messages.message(0));
  }
}

/// At most a window of messages is in flight, so a slot is free again when its next message
/// arrives.
void serve_echoes(const FloorStream& stream, const FloorHello& hello) {
  MessageRing messages(hello.bytes, hello.window);
  Permits whole;
  std::thread writer([&] {
    try {
      for (std::size_t number = 0; whole.take(1) > 0; ++number)
        stream.send(messages.message(number));
    } catch (const std::exception&) {
      stream.end();  // ends the reader too
    }
  });
  try {
    while (true) {
      if (const std::size_t count = messages.receive(stream, true)) whole.give(count);
    }
  } catch (...) {
    whole.end();
    stream.end();
    writer.join();
    throw;
  }
}

void serve(const FloorStream& stream) {
  const FloorHello hello = receive_hello(stream);
  if (hello.echo == 0) serve_pushes(stream, hello);
  if (hello.window == 1) serve_echoes_in_turn(stream, hello);
  serve_echoes(stream, hello);
}

}  // namespace

void serve_floor(const batchrpc_benchmarks::Listener& listener) {
  while (std::optional<batchrpc_benchmarks::Socket> socket = listener.accept()) {
    try {
      serve(FloorStream(std::move(*socket), {}));
    } catch (const EndOfStream&) {  // continue with the next client
    }
  }
}

}  // namespace tensor_benchmark
