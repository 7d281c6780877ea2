#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/testing.hpp"

namespace reliability {

class Things;

/// An object behind handles, which holds handles itself.
class Thing {
 public:
  Thing(std::uint64_t id, std::uint64_t life, const batchrpc::Bytes& ballast);
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;
  ~Thing();

  std::uint64_t use(std::uint64_t id, const batchrpc::Bytes& ballast);
  void keep(std::uint64_t id, batchrpc::RRef<Thing> other, std::uint64_t other_id);
  std::pair<std::uint64_t, batchrpc::RRef<Thing>> give();
  void drop();

  [[nodiscard]] std::uint64_t life() const noexcept { return life_; }
  [[nodiscard]] std::uint64_t holds() const noexcept { return held_id_; }  ///< 0: nothing

  static inline Things* model = nullptr;

 private:
  const std::uint64_t id_;
  const std::uint64_t life_;
  batchrpc::RRef<Thing> held_;
  std::uint64_t held_id_ = 0;
};

}  // namespace reliability

namespace batchrpc::test {

/// What may go wrong in a program, and so what handles may suffer.
enum class ReferenceWeather : unsigned char {
  calm,
  cuts,     ///< connections break
  apart,    ///< nodes are out of reach, or stand still, for less than the lease
  kills,    ///< nodes are killed and restarted
  expired,  ///< nodes are out of reach for longer than the lease
  storm,    ///< all of these
};

/// Nodes that create, copy, pass on, keep, use and drop handles to each other's objects, in a world
/// with faults, all of it out of one seed; and the model that says what may not be.
class ReferenceProgram {
 public:
  using Id = std::uint64_t;
  using Thing = reliability::Thing;

  explicit ReferenceProgram(std::uint64_t seed);
  ~ReferenceProgram();
  ReferenceProgram(const ReferenceProgram&) = delete;
  ReferenceProgram& operator=(const ReferenceProgram&) = delete;

  void run();
  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept { return complaints_; }
  /// How many calls ended how, and how many objects were made.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& outcomes() const { return outcomes_; }

 private:
  friend class reliability::Things;

  struct Held {
    Id thing = 0;
    RRef<Thing> handle;
  };
  // A node, from its start to its death.
  struct Life {
    Id number = 0;
    int host = 0;
    std::string name;
    std::optional<Node> node;  // none: it has yet to join
    std::vector<Held> held;
    bool paused = false;
    bool dead = false;
  };
  enum class State : unsigned char { awaited, alive, destroyed };
  // An object as the model knows it.
  struct Known {
    State state = State::awaited;
    Id life = 0;  // of its owner
  };

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] bool one_in(std::uint64_t n) { return below(n) == 0; }
  [[nodiscard]] Duration some_time(Duration at_most) {
    return Duration(static_cast<Duration::rep>(below(static_cast<std::uint64_t>(at_most.count()))));
  }
  [[nodiscard]] Bytes ballast();
  [[nodiscard]] CallOptions some_options();
  [[nodiscard]] bool loses_objects() const;

  std::shared_ptr<Life> begin_life(int host);
  void live(const std::shared_ptr<Life>& life, Node node);
  void expose_all(const std::shared_ptr<Life>& life);
  [[nodiscard]] std::shared_ptr<Life> some_life();

  // reference_repeats.cpp
  void repeat_messages(const std::shared_ptr<Life>& life);
  template <class... Args, class Handle>
  void expose_repeated(const std::shared_ptr<Life>& life, std::string_view name, Handle handle);

  // reference_actions.cpp
  void act();
  void create(Life& from, int to);
  void own(Life& from);
  void pass(Life& from, int to);
  void ask(const std::shared_ptr<Life>& from, int to);
  void use(Life& from);
  void keep(Life& from);
  void take_out(const std::shared_ptr<Life>& from);
  void drop(Life& from);
  template <class T>
  void follow(const std::string& what, Id thing, Future<T> future);
  void receive(Life& life, Id thing, RRef<Thing> handle);

  void plan_faults();
  void fault(Duration lasts);
  void choose_holder_and_owner(int& a, int& b) const;
  void kill(int host);
  void heal();
  void end();

  void complain(const std::string& what);

  const ReferenceWeather weather_;
  std::mt19937_64 random_;
  SimulatedWorld world_;
  int hosts_ = 0;
  bool clean_ = false;
  std::vector<std::shared_ptr<Life>> lives_;  // by host
  std::deque<std::shared_ptr<Life>> all_;     // by number - 1
  std::map<Id, Known> things_;
  std::map<Id, const Thing*> objects_;  // that are alive
  Id next_thing_ = 1;
  bool ending_ = false;
  std::vector<std::string> complaints_;
  std::map<std::string, std::uint64_t> outcomes_;
};

}  // namespace batchrpc::test

namespace reliability {

/// The model, as objects see it.
class Things {
 public:
  explicit Things(batchrpc::test::ReferenceProgram& program) : program_(program) {}
  void made(std::uint64_t id, const Thing& thing);
  void destroyed(std::uint64_t id, const Thing& thing);
  void used(std::uint64_t id, std::uint64_t as, const Thing& thing);

 private:
  batchrpc::test::ReferenceProgram& program_;
};

}  // namespace reliability
