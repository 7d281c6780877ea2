#include "batchrpc/profile/profile_table.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "profile/sample_records.hpp"

namespace batchrpc {
namespace profile_table_test {

using namespace std::chrono_literals;
using test::SampleWorld;

const ProfileRow& row(const ProfileTable& table, std::string_view name) {
  for (const ProfileRow& row : table.rows()) {
    if (row.name == name) return row;
  }
  FAIL("there is no row " << name);
  throw 0;  // not reached
}

// w0 calls add of w1 twice, whose handler runs operators and calls mul of w2.
Recording nested_recording() {
  SampleWorld world;
  world.ahead = {{1, 3s}, {2, -7s}};
  Recording recording{.node = "w0", .rank = 0};
  for (int i = 0; i < 2; ++i) {
    CallPhases phases = SampleWorld::kUsual;
    phases.handler = 1500us;
    CallRecord call = world.call("add", 0, 1, i * 2ms, phases);
    SampleWorld::run(call, "aten::empty", 5us, 7us);
    SampleWorld::run(call, "aten::add", 3us, 13us);
    CallRecord nested = world.call("mul", 1, 2, i * 2ms + 40us);
    SampleWorld::run(nested, "aten::mul", 2us, 6us);
    SampleWorld::nest(call, std::move(nested));
    recording.calls.push_back(std::move(call));
  }
  recording.calls.back().error = "TimedOut";
  return recording;
}

// Two rows of one batch, and the operators that ran for both.
Recording batch_recording() {
  SampleWorld world;
  Recording recording{.node = "w0", .rank = 0};
  for (int caller : {0, 2}) {
    CallPhases phases = SampleWorld::kUsual;
    phases.batch = 5us;
    CallRecord row = world.call("act", caller, 1, 0us, phases, {.number = 1, .rows = 2});
    SampleWorld::run(row, "aten::matmul", 1us, 11us);
    SampleWorld::run(row, "aten::relu", 11us, 15us);
    recording.calls.push_back(std::move(row));
  }
  return recording;
}

TEST_CASE(
    "the table has the columns of PyTorch's, and calls, operators and nested calls by its names") {
  CHECK("\n" + ProfileTable(nested_recording()).table() == R"(
-------------------------------------------------------------------------  ----------------  --------------  -----------  ---------  ------------  ---------------  -------  ---------  --------  ------  ---------------
Name                                                                       Self CPU total %  Self CPU total  CPU total %  CPU total  CPU time avg  Number of Calls  Node ID  Bytes out  Bytes in  Errors  Mean batch size
-------------------------------------------------------------------------  ----------------  --------------  -----------  ---------  ------------  ---------------  -------  ---------  --------  ------  ---------------
rpc_async#add(w0 -> w1)                                                              15.00%         6.000us     7630.00%    3.052ms       1.526ms                2        0        200       120       1                -
rpc_async#add(w0 -> w1)#remote_op: empty                                             10.00%         4.000us       10.00%    4.000us       2.000us                2        1          -         -       -                -
rpc_async#add(w0 -> w1)#remote_op: add                                               40.00%        16.000us       50.00%   20.000us      10.000us                2        1          -         -       -                -
rpc_async#add(w0 -> w1)#remote_op: rpc_async#mul(w1 -> w2)                           15.00%         6.000us      230.00%   92.000us      46.000us                2        1        200       120       0                -
rpc_async#add(w0 -> w1)#remote_op: rpc_async#mul(w1 -> w2)#remote_op: mul            20.00%         8.000us       20.00%    8.000us       4.000us                2        2          -         -       -                -
-------------------------------------------------------------------------  ----------------  --------------  -----------  ---------  ------------  ---------------  -------  ---------  --------  ------  ---------------
Self CPU time total: 40.000us
)");
}

TEST_CASE("the phases of calls are on average what they add up to") {
  CHECK("\n" + ProfileTable(nested_recording()).phases_table() == R"(
----------------------------------------------------------  ---------------  -------  -------  -------  -------  -------  -------  --------  -------  -------  ----------
Name                                                        Number of Calls  Node ID   encode   queued     wire  waiting    batch   handler    reply   decode  end to end
----------------------------------------------------------  ---------------  -------  -------  -------  -------  -------  -------  --------  -------  -------  ----------
rpc_async#add(w0 -> w1)                                                   2        0  1.000us  2.000us  9.000us  3.000us  0.000us   1.500ms  9.000us  2.000us     1.526ms
rpc_async#add(w0 -> w1)#remote_op: rpc_async#mul(w1 -> w2)                2        1  1.000us  2.000us  9.000us  3.000us  0.000us  20.000us  9.000us  2.000us    46.000us
----------------------------------------------------------  ---------------  -------  -------  -------  -------  -------  -------  --------  -------  -------  ----------
)");
}

TEST_CASE("a run for a batch is in the rows of all its calls, but counts once") {
  const ProfileTable table(batch_recording());
  CHECK("\n" + table.table() == R"(
--------------------------------------------------  ----------------  --------------  -----------  ---------  ------------  ---------------  -------  ---------  --------  ------  ---------------
Name                                                Self CPU total %  Self CPU total  CPU total %  CPU total  CPU time avg  Number of Calls  Node ID  Bytes out  Bytes in  Errors  Mean batch size
--------------------------------------------------  ----------------  --------------  -----------  ---------  ------------  ---------------  -------  ---------  --------  ------  ---------------
rpc_async#act(w0 -> w1)                                       15.00%         3.000us      255.00%   51.000us      51.000us                1        0        100        60       0              2.0
rpc_async#act(w0 -> w1)#remote_op: matmul (shared)            50.00%        10.000us       50.00%   10.000us      10.000us                1        1          -         -       -                -
rpc_async#act(w0 -> w1)#remote_op: relu (shared)              20.00%         4.000us       20.00%    4.000us       4.000us                1        1          -         -       -                -
rpc_async#act(w2 -> w1)                                       15.00%         3.000us      255.00%   51.000us      51.000us                1        2        100        60       0              2.0
rpc_async#act(w2 -> w1)#remote_op: matmul (shared)            50.00%        10.000us       50.00%   10.000us      10.000us                1        1          -         -       -                -
rpc_async#act(w2 -> w1)#remote_op: relu (shared)              20.00%         4.000us       20.00%    4.000us       4.000us                1        1          -         -       -                -
--------------------------------------------------  ----------------  --------------  -----------  ---------  ------------  ---------------  -------  ---------  --------  ------  ---------------
Self CPU time total: 20.000us
)");
  Duration of_rows{};
  for (const ProfileRow& row : table.rows())
    of_rows += row.self_total;
  CHECK(of_rows == 34us);
  CHECK(table.self_total() == 20us);
}

TEST_CASE("runs that only look alike count each") {
  Recording recording = batch_recording();
  recording.calls[1].operators[0].thread += 1;
  recording.calls[1].operators[1].name = "aten::tanh";
  CHECK(ProfileTable(recording).self_total() == 34us);
}

TEST_CASE("an operator's self time is without those that ran within it on its thread") {
  SampleWorld world;
  CallRecord call = world.call("f", 0, 1, 0us);
  SampleWorld::run(call, "aten::c", 2us, 3us);
  SampleWorld::run(call, "aten::b", 1us, 5us);
  SampleWorld::run(call, "aten::same", 6us, 8us);
  SampleWorld::run(call, "aten::around", 6us, 8us);
  SampleWorld::run(call, "aten::elsewhere", 1us, 9us).thread += 1;
  SampleWorld::run(call, "aten::a", 0us, 10us);
  const ProfileTable table({.calls = {call}, .node = "w0"});
  const auto self = [&](const std::string& name) {
    return row(table, "rpc_async#f(w0 -> w1)#remote_op: " + name).self_total;
  };
  CHECK(self("a") == 4us);
  CHECK(self("b") == 3us);
  CHECK(self("c") == 1us);
  CHECK(self("around") == 0us);
  CHECK(self("same") == 2us);
  CHECK(self("elsewhere") == 8us);
}

TEST_CASE("rows are put in order, and the rest is counted") {
  ProfileTable table(nested_recording());
  const auto first = [&](ProfileSort order) { return table.sort_by(order).rows().front().name; };
  CHECK(first(ProfileSort::total) == "rpc_async#add(w0 -> w1)");
  CHECK(first(ProfileSort::mean) == "rpc_async#add(w0 -> w1)");
  CHECK(first(ProfileSort::self_total) == "rpc_async#add(w0 -> w1)#remote_op: add");
  CHECK(first(ProfileSort::errors) == "rpc_async#add(w0 -> w1)");
  CHECK(first(ProfileSort::name) == "rpc_async#add(w0 -> w1)");
  CHECK(first(ProfileSort::first_seen) == "rpc_async#add(w0 -> w1)");
  const ProfileTable sorted = ProfileTable(nested_recording()).sort_by(ProfileSort::self_total);
  CHECK(sorted.rows().front().name == "rpc_async#add(w0 -> w1)#remote_op: add");
  const std::string text = table.table({.row_limit = 2, .name_width = 20});
  CHECK(text.find("rpc_async#add(w0 ...") != std::string::npos);
  CHECK(text.find("3 more rows (ProfileTableOptions::row_limit)\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3 + 2 + 1 + 2);
}

// Of a temporary they are its own, so that a loop over them is right.
static_assert(
    std::is_same_v<decltype(std::declval<ProfileTable>().rows()), std::vector<ProfileRow>>);

TEST_CASE("a name's characters do not break the lines of a table, or its reader's terminal") {
  SampleWorld world;
  const Recording recording{.calls = {world.call("a\nb\u202e\xff", 0, 1, 0us)}};
  CHECK(ProfileTable(recording).table().find("rpc_async#a\\nb\\u202e\\xff(w0 -> w1)") !=
        std::string::npos);
}

TEST_CASE("a table says that it is not of all calls") {
  Recording recording = batch_recording();
  recording.sampled = 10;
  recording.left_out = 3;
  recording.calls[0].left_out = 2;
  const std::string text = ProfileTable(recording).table();
  CHECK(
      text.ends_with("Self CPU time total: 20.000us\n"
                     "Sampled: one outgoing call in 10 was recorded\n"
                     "Left out: 5 calls and operators for which there was no room "
                     "(ProfilerOptions::max_events; a reply has room for 4096, and for eight "
                     "levels of calls)\n"));
}

TEST_CASE("calls of which the callee alone has told have rows of their own, with what is known") {
  SampleWorld world;
  const CallRecord made = world.call("f", 0, 1, 0us);
  CallRecord answered = world.call("f", 0, 1, 0us);
  test::lose_caller(answered);
  const ProfileTable table({.calls = {made, answered, answered}, .node = "w0"});
  const ProfileRow& own = row(table, "rpc_async#f(w0 -> w1)");
  const ProfileRow& theirs = row(table, "rpc_async#f(w0 -> w1) (answered)");
  CHECK(own.count == 1);
  CHECK(own.node_id == 0);
  CHECK_FALSE(own.is_answered);
  CHECK(theirs.count == 2);
  CHECK(theirs.node_id == 1);
  CHECK(theirs.is_answered);
  CHECK(theirs.total == 2 * (own.phases.waiting + own.phases.batch + own.phases.handler));
  CHECK(theirs.self_total == 0us);
  CHECK(table.self_total() == own.self_total);
  CHECK("\n" + table.phases_table() == R"(
--------------------------------  ---------------  -------  -------  -------  -------  -------  -------  --------  -------  -------  ----------
Name                              Number of Calls  Node ID   encode   queued     wire  waiting    batch   handler    reply   decode  end to end
--------------------------------  ---------------  -------  -------  -------  -------  -------  -------  --------  -------  -------  ----------
rpc_async#f(w0 -> w1)                           1        0  1.000us  2.000us  9.000us  3.000us  0.000us  20.000us  9.000us  2.000us    46.000us
rpc_async#f(w0 -> w1) (answered)                2        1        -        -        -  3.000us  0.000us  20.000us        -        -    23.000us
--------------------------------  ---------------  -------  -------  -------  -------  -------  -------  --------  -------  -------  ----------
)");
  const std::string text = table.table();
  CHECK_THAT(text, Catch::Contains("rpc_async#f(w0 -> w1)                      100.00%"));
  CHECK_THAT(text,
             Catch::Contains("rpc_async#f(w0 -> w1) (answered)                 -               -"));
}

TEST_CASE("a table of nothing is a table") {
  const std::string text = ProfileTable(Recording{}).table();
  CHECK(text.ends_with("Self CPU time total: 0.000us\n"));
}

TEST_CASE("names of more than one byte a letter stay in their column, and whole") {
  SampleWorld world;
  CallRecord call = world.call("größe", 0, 1, 0us);
  const ProfileTable table({.calls = {call}, .node = "w0"});
  CHECK(table.table({.name_width = 16}).find("\nrpc_async#grö...  ") != std::string::npos);
}

TEST_CASE("phases of each row add up to its total, whatever is recorded") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const ProfileTable table(test::random_recording(seed, 100));
    for (const ProfileRow& row : table.rows()) {
      if (row.is_call && row.phases.total() != row.total) FAIL(seed);
      if (row.self_total > row.total || row.self_total < 0us) FAIL(seed);
    }
  }
}

}  // namespace profile_table_test
}  // namespace batchrpc
