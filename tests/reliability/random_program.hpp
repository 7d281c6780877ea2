#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/testing.hpp"
#include "reliability/ledger.hpp"

namespace reliability {

/// An object behind handles. Counts its instances, and has the ledger check the order of calls.
class Diary {
 public:
  explicit Diary(std::uint64_t /*number*/) { ++alive; }
  Diary(const Diary&) = delete;
  Diary& operator=(const Diary&) = delete;
  ~Diary() { --alive; }
  std::uint64_t note(std::uint64_t id, std::uint64_t handle, std::uint64_t number,
                     const batchrpc::Bytes& payload);

  static inline int alive = 0;
  static inline batchrpc::test::Ledger* ledger = nullptr;
};

}  // namespace reliability

namespace batchrpc::test {

/// Memory of the program's that travels; how much of it somebody still holds.
class Payload {
 public:
  [[nodiscard]] static Bytes make(std::uint64_t id, std::size_t size);
  [[nodiscard]] static bool is_of(std::uint64_t id, const Bytes& bytes);

  static inline int alive = 0;
};

/// Some nodes that call each other in all ways that there are, in a world with faults, all of it
/// out of one seed: random_actions.cpp says what they do, random_functions.cpp what they answer,
/// random_faults.cpp what goes wrong.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed);
  ~RandomProgram();
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  void run();
  /// Of the model.
  /// @{
  [[nodiscard]] const auto& complaints() const { return ledger_.complaints(); }
  [[nodiscard]] const auto& outcomes() const { return ledger_.outcomes(); }
  /// @}

 private:
  using Id = std::uint64_t;

  // A node, from its start to its death.
  struct Life {
    int host = 0;
    std::string name;
    std::shared_ptr<Loop> loop;
    std::optional<Node> node;  // none: it has yet to join
    std::map<Id, Promise<Id>> promised;
    std::vector<RRef<reliability::Diary>> held;
    bool limited = false;
    bool paused = false;
    bool dead = false;
  };
  // Of an object that the program has created or got.
  struct Handle {
    RRef<reliability::Diary> object;
    std::shared_ptr<Life> by;
    Id number = 0;
    std::uint64_t calls = 0;
  };

  // What is drawn.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] bool one_in(std::uint64_t n) { return below(n) == 0; }
  [[nodiscard]] Duration some_time(Duration at_most) {
    return Duration(static_cast<Duration::rep>(below(static_cast<std::uint64_t>(at_most.count()))));
  }
  [[nodiscard]] LinkOptions some_link();
  [[nodiscard]] std::size_t some_size();

  [[nodiscard]] NodeOptions options_of(Life& life);
  std::shared_ptr<Life> begin_life(int host);
  void live(const std::shared_ptr<Life>& life, Node node);

  // random_functions.cpp
  void expose_all(Life& life);
  [[nodiscard]] Future<Id> promise(Life& life, Id id, Duration delay);

  // random_actions.cpp
  void act();
  [[nodiscard]] std::shared_ptr<Life> some_life();
  [[nodiscard]] CallOptions some_options(LedgerCall& call, bool may_retry);
  LedgerCall& enter(const Life& from, int to, const std::string& function, LedgerCall call);
  template <class T>
  void follow(const LedgerCall& call, const Life& from, Future<T> future);
  [[nodiscard]] Future<Id> call_plain(Life& from, int to, const std::string& function, Id parent);
  void call_large(Life& from, int to);
  void relay(Life& from, int to);
  void notify(Life& from, int to);
  void drop_at_once(Life& from, int to);
  void create(const std::shared_ptr<Life>& from, int to);
  void use_handle();
  void pass_handle(Life& from, int to);
  [[nodiscard]] bool refuses(int host) const;

  // random_faults.cpp
  void plan_faults();
  void fault();
  void part(int a, int b, Duration time);
  void pause(int host, Duration time);
  void kill(int host);
  void heal();

  void check_counts(const Life& life);
  void probe(Duration within);
  void end();

  const Weather weather_;
  std::mt19937_64 random_;
  SimulatedWorld world_;
  Ledger ledger_;
  bool narrow_ = false;      // links take little at once
  std::size_t largest_ = 0;  // payload
  int hosts_ = 0;
  bool clean_ = false;  // no fault comes any more
  std::array<bool, 4> has_limits_{};
  std::vector<std::shared_ptr<Life>> lives_;  // by host
  std::vector<std::shared_ptr<Life>> dead_;
  std::vector<Handle> handles_;
  Id next_handle_ = 1;
};

}  // namespace batchrpc::test
