#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

/// Classes of objects that tests create on other nodes. Named, since the names are on the wire.
namespace objects {

/// Counts its instances.
class Counter {
 public:
  explicit Counter(int start) : value_(start) { ++alive; }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { --alive; }

  int add(int n) { return value_ += n; }
  [[nodiscard]] int value() const { return value_; }
  void hidden() {}

  static inline std::atomic<int> alive{0};

 private:
  int value_;
};

/// Writes down what happens to it; its methods may wait for `gate`.
class Diary {
 public:
  explicit Diary(const std::string& first) { lines_.push_back("made with " + first); }

  void note(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> lines() { return lines_; }

  /// Keeps the object busy until the gate opens.
  void wait(const std::string& line) {
    lines_.push_back(line + " begins");
    gate->get();
    lines_.push_back(line + " ends");
  }
  /// Returns at once, and is ready when the gate opens.
  batchrpc::Future<std::string> later(const std::string& line) {
    lines_.push_back(line + " begins");
    return gate->then([line] { return line + " is ready"; });
  }
  /// The same as a coroutine, which uses its argument after the gate has opened.
  batchrpc::Future<std::string> coroutine(const std::string& line) {
    lines_.push_back(line + " begins");
    co_await *gate;
    lines_.push_back(line + " ends");
    co_return line + " is ready";
  }
  /// Who calls, and how long is left.
  std::pair<std::string, batchrpc::Duration> asked() {
    const auto* context = batchrpc::CallContext::current();
    return {context->caller().name, context->time_left().value()};
  }
  /// A future that will never be: there is none.
  batchrpc::Future<int> nothing() { return {}; }

  static inline std::optional<batchrpc::Future<void>> gate;

 private:
  std::vector<std::string> lines_;
};

/// Cannot be constructed.
class Broken {
 public:
  explicit Broken(bool exception) {
    if (exception) throw std::runtime_error("there is no disk");
    throw 42;
  }
  int use() { return 1; }
};

/// Cannot be constructed, and says so in the library's own words.
class Refusing {
 public:
  Refusing() { throw batchrpc::InvalidArgument("not today"); }
  int use() { return 1; }
};

/// Can travel.
class Point {
 public:
  Point(int x, int y) : x_(x), y_(y) {}
  void move(int x, int y) { x_ = x, y_ = y; }
  [[nodiscard]] int x() const { return x_; }
  [[nodiscard]] int y() const { return y_; }

 private:
  int x_;
  int y_;
};

/// Holds a handle to another object, maybe of its own node.
class Holder {
 public:
  explicit Holder(batchrpc::RRef<Counter> held) : held_(std::move(held)) { ++alive; }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { --alive; }
  batchrpc::Future<int> add(int n) { return held_.call<&Counter::add>(n); }
  batchrpc::RRef<Counter> give() { return held_; }

  static inline std::atomic<int> alive{0};

 private:
  batchrpc::RRef<Counter> held_;
};

/// As an RRef is on the wire, for who makes one up.
struct Forged {
  std::string owner{};
  batchrpc::detail::ObjectId object{};
  std::string parent{};
  std::pair<std::uint64_t, std::uint64_t> fork{};
};

}  // namespace objects

template <>
struct batchrpc::Codec<objects::Point> {
  using Wire = std::pair<int, int>;
  static Wire encode(const objects::Point& point) { return {point.x(), point.y()}; }
  static objects::Point decode(Wire&& wire) { return {wire.first, wire.second}; }
};

namespace batchrpc::test {

/// Exposes all that the classes above have, but Counter::hidden.
inline void expose_objects(const Node& node) {
  node.expose_class<objects::Counter(int)>();
  node.expose<&objects::Counter::add>();
  node.expose<&objects::Counter::value>();
  node.expose_class<objects::Diary(std::string)>();
  node.expose<&objects::Diary::note>();
  node.expose<&objects::Diary::lines>();
  node.expose<&objects::Diary::wait>();
  node.expose<&objects::Diary::later>();
  node.expose<&objects::Diary::coroutine>();
  node.expose<&objects::Diary::asked>();
  node.expose<&objects::Diary::nothing>();
  node.expose_class<objects::Broken(bool)>();
  node.expose<&objects::Broken::use>();
  node.expose_class<objects::Point(int, int)>();
  node.expose<&objects::Point::move>();
  node.expose_class<objects::Holder(RRef<objects::Counter>)>();
  node.expose<&objects::Holder::add>();
  node.expose<&objects::Holder::give>();
}

/// Three nodes; objects live on "owner", are made by "user", and "third" hears of them.
struct ObjectWorld {
  // What nodes that end leave to the loop keeps the loop alive until it has run.
  struct LastTasks {
    ~LastTasks() { world.run_for(std::chrono::seconds(1)); }
    const VirtualWorld& world;
  };

  VirtualWorld world;
  LastTasks last_tasks{world};
  Node owner = world.root("owner");
  Node user = world.join("user");
  Node third = world.join("third");

  ObjectWorld() {
    objects::Counter::alive = 0;
    objects::Holder::alive = 0;
    expose_objects(owner);
  }

  /// Lets everything that is on its way arrive.
  void settle() const { world.run_for(std::chrono::seconds(1)); }
};

/// Handles that the third node keeps.
struct KeepingWorld : ObjectWorld {
  KeepingWorld() {
    third.expose("keep", [this](RRef<objects::Counter> handle) { kept = std::move(handle); });
  }
  RRef<objects::Counter> kept;
};

}  // namespace batchrpc::test
