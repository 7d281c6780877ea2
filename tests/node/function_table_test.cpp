#include "call/function_table.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace function_table_test {

std::shared_ptr<detail::ExposedFunction> function(std::string name) {
  const auto twice = [](int x) { return 2 * x; };
  using Traits = detail::FunctionTraits<decltype(twice)>;
  return std::make_shared<detail::TypedFunction<decltype(twice), Traits>>(std::move(name), twice,
                                                                          ExposeOptions{});
}

TEST_CASE("a table finds functions by name and signature") {
  FunctionTable table;
  table.add(function("twice"));
  const std::string signature = table.find("twice")->signature;
  CHECK(table.resolve("twice", signature, "here", TimePoint()) == table.find("twice"));
  CHECK_THROWS_AS(table.resolve("twice", "something else", "here", TimePoint()), BadSignature);
  CHECK_THROWS_AS(table.resolve("thrice", signature, "here", TimePoint()), NotFound);
  CHECK_THROWS_AS(table.add(function("twice")), InvalidArgument);
  CHECK(table.remove("twice"));
  CHECK_FALSE(table.remove("twice"));
  CHECK(table.find("twice") == nullptr);
}

TEST_CASE("names come in order") {
  FunctionTable table;
  for (const char* name : {"c", "a", "b"})
    table.add(function(name));
  CHECK(table.names() == std::vector<std::string>{"a", "b", "c"});
  table.clear();
  CHECK(table.names().empty());
}

TEST_CASE("a kind says how its functions are known, and what is told of them") {
  FunctionTable table;
  table.add_kind({.prefix = "batchrpc.thing:",
                  .own_parameter = "u64",
                  .own_parameters = 2,
                  .noun = "thing",
                  .described = "the thing ",
                  .if_missing = "make one",
                  .if_signature_differs = "make another",
                  .used_as = "as a thing",
                  .is_ordinary = "as a function"});
  table.add_kind({.prefix = "batchrpc.start", .shown = "start()"});
  CHECK(table.shown("batchrpc.thing:box") == "box");
  CHECK(table.shown("batchrpc.start") == "start()");
  CHECK(table.shown("box") == "box");
  CHECK(table.shown_signature("batchrpc.thing:box", "void(u64,u64,i32)") == "void(i32)");
  CHECK(table.shown_signature("batchrpc.thing:box", "void(u64)") == "void()");
  CHECK(table.shown_signature("box", "void(u64,i32)") == "void(u64,i32)");

  const auto told = [&](std::string_view name) -> std::string {
    try {
      (void)table.resolve(name, "void()", "here", TimePoint());
    } catch (const Error& error) {
      return error.what();
    }
    return "it is there";
  };
  CHECK(told("batchrpc.thing:box") == "no thing 'box' is exposed on here; make one");
  table.add(function("batchrpc.thing:box"));
  CHECK(table.find("batchrpc.thing:box")->shown == "box");
  CHECK(told("box") == "'box' is exposed on here as a thing");
  CHECK_THAT(told("batchrpc.thing:box"),
             Catch::Contains("the thing 'box' on here has the signature i32(i32)") &&
                 Catch::Contains("; make another"));
  CHECK_THAT(told("batchrpc.thing:bux"), Catch::Contains("did you mean 'box'?"));
  table.add(function("lid"));
  CHECK(told("batchrpc.thing:lid") == "'lid' is exposed on here as a function");
}

TEST_CASE("near names are suggested, the nearest first, at most three") {
  const std::vector<std::string> names{"add", "adds",     "added",
                                       "odd", "subtract", "space::multiply"};
  CHECK(suggest("ad", names) == "did you mean 'add'?");
  CHECK(suggest("subtrakt", names) == "did you mean 'subtract'?");
  CHECK(suggest("multiply", names) == "did you mean 'space::multiply'?");
  CHECK(suggest("other::multiply", names) == "did you mean 'space::multiply'?");
  CHECK(suggest("nothing like it", names).empty());
  CHECK(suggest("", names).empty());
  const std::vector<std::string> many{"name1", "name2", "name3", "name4"};
  CHECK(suggest("name", many) == "did you mean 'name1', 'name2', 'name3'?");
}

TEST_CASE("of many names those that look most alike are compared, and the nearest is found") {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i)
    names.push_back("function_" + std::to_string(i) + "_of_many");
  names.emplace_back("multiply_many_matrices");
  CHECK(suggest("multiply_mamy_matrices", names) == "did you mean 'multiply_many_matrices'?");
  CHECK_THAT(suggest("function_4321_of_mony", names),
             Catch::StartsWith("did you mean 'function_4321_of_many'"));
}

TEST_CASE("long names are compared where they differ") {
  const std::string space = std::string(100, 'a') + "::";
  CHECK(suggest(space + "addd", {space + "add", std::string(100, 'b') + "::sub"}) ==
        "did you mean '" + space + "add'?");
  CHECK(suggest(std::string(65, 'x') + "1", {std::string(65, 'y') + "2"}).empty());
}

TEST_CASE("names are suggested ten times a second, however many unknown functions are called") {
  FunctionTable table;
  table.add(function("twice"));
  const auto suggestions = [&](TimePoint now) {
    int count = 0;
    for (int i = 0; i < 1000; ++i) {
      try {
        (void)table.resolve("twise", "void()", "here", now);
      } catch (const NotFound& error) {
        const std::string text = error.what();
        CHECK(text.starts_with("no function 'twise' is exposed on here; "));
        if (text.ends_with("did you mean 'twice'?")) ++count;
      }
    }
    return count;
  };
  const TimePoint start = TimePoint() + std::chrono::hours(1);
  CHECK(suggestions(start) == 10);
  CHECK(suggestions(start + std::chrono::milliseconds(999)) == 0);
  CHECK(suggestions(start + std::chrono::seconds(1)) == 10);
}

TEST_CASE("the library's own names are not suggested, and names from the wire may be anything") {
  CHECK(suggest("batchrpc.whi", {"batchrpc.who"}).empty());
  CHECK(suggest(std::string(1 << 20, 'x'), {"x"}).empty());
  CHECK(suggest(std::string("\0\xff", 2), {"ab"}).empty());
}

}  // namespace function_table_test
}  // namespace batchrpc
