#include "env/group_table.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

namespace batchrpc::env {
namespace group_table_test {

using Groups = std::vector<std::size_t>;

/// Two workers with two buffers each, whose groups are there.
struct Table : GroupTable {
  Table() : GroupTable(2, 2, std::make_shared<PayloadMemory>()) {
    begin(0);
    begin(1);
  }
  bool answer(std::size_t g) {
    const std::uint64_t now = ticket(g);
    return answered(g, now, {}, place_for(g, now, 64), {});
  }
};

TEST_CASE("a group is ready when its answer has come, and held when that was given out") {
  Table table;
  CHECK(table.worker_of(3) == 1);
  CHECK(table.buffer_of(3) == 1);
  const std::uint64_t ticket = table.order(3, {.steps = 5}, 64);
  CHECK(table.phase(3) == GroupPhase::pending);
  CHECK(table.answer(3));
  CHECK(table.phase(3) == GroupPhase::ready);
  const BatchPart part = table.give_out(3);
  CHECK(part.source.worker == 1);
  CHECK(part.source.buffer == 1);
  CHECK(part.source.turn == ticket);
  CHECK(part.steps == 5);
  CHECK(part.observations.size() == 64);
  CHECK(table.phase(3) == GroupPhase::held);
  CHECK(table.give_out(3).steps == 0);  // none of its rows are valid
}

TEST_CASE("an answer to what is awaited no more is too late") {
  Table table;
  const std::uint64_t first = table.order(0, {}, 64);
  const std::uint64_t second = table.order(0, {}, 64);
  CHECK_FALSE(table.awaits(0, first));
  CHECK(table.place_for(0, first, 64).empty());
  CHECK_FALSE(table.answered(0, first, {}, {}, {}));
  table.lose(0);
  CHECK_FALSE(table.answered(0, second, {}, {}, {}));
  CHECK(table.phase(0) == GroupPhase::lost);
  CHECK(table.phase(2) == GroupPhase::lost);
  CHECK(table.phase(1) == GroupPhase::held);
}

TEST_CASE("buffers come in the order in which they were sent, whole") {
  Table table;
  for (const std::size_t g : {2U, 3U, 0U, 1U})
    (void)table.order(g, {}, 64);
  CHECK(table.next_buffer() == 1U);
  CHECK(table.answer(3));
  CHECK(table.answer(0));
  CHECK(table.any(1, GroupPhase::pending));
  CHECK(table.answer(2));
  CHECK_FALSE(table.any(1, GroupPhase::pending));
  CHECK(table.take_buffer(1) == Groups{2, 3});
  CHECK(table.arrived() == 1);
  CHECK(table.next_buffer() == 0U);
  CHECK(table.next_buffer() == 0U);  // which was not sent, but has something on its way
  CHECK(table.answer(1));
  CHECK(table.take_buffer(0) == Groups{0, 1});
}

TEST_CASE("nothing is next when nothing is on its way") {
  Table table;
  CHECK_FALSE(table.next_buffer());
  (void)table.order(0, {}, 64);
  table.lose(0);
  CHECK(table.next_buffer() == 0U);  // was sent
  CHECK_FALSE(table.next_buffer());
}

TEST_CASE("groups come in the order of their answers, those of lost workers not") {
  Table table;
  table.receive_in_order(false);
  for (std::size_t g = 0; g < table.size(); ++g)
    (void)table.order(g, {}, 64);
  for (const std::size_t g : {3U, 0U, 2U})
    CHECK(table.answer(g));
  CHECK(table.arrived() == 3);
  table.lose(0);
  CHECK(table.take_arrived() == Groups{3});
  CHECK(table.arrived() == 0);
  CHECK(table.next_buffer() == 0U);  // the other one is not on its way
  table.start_over();
  CHECK(table.next_buffer() == 0U);  // group 1 is pending
}

}  // namespace group_table_test
}  // namespace batchrpc::env
