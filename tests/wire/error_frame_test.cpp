#include <catch2/catch.hpp>
#include <exception>
#include <stdexcept>
#include <string>

#include "batchrpc/base/error.hpp"
#include "wire/capnp_view.hpp"
#include "wire/frame.hpp"

// What an error frame says of an exception, and of whether its function ran.

namespace batchrpc {
namespace error_frame_test {

using test::CapnpView;

TEST_CASE("an exception of any type travels with what it says and its type") {
  const auto body_of = [](const std::exception_ptr& error) {
    const auto words = wire::error_frame(1, error);
    return wire::read_error(wire::parse_frame(words));
  };
  const auto range = body_of(std::make_exception_ptr(std::out_of_range("index 7")));
  CHECK(range.code == static_cast<std::uint16_t>(ErrorCode::remote_error));
  CHECK(range.message == "index 7");
  CHECK(range.type == "std::out_of_range");
  CHECK(range.may_have_run);
  const auto number = body_of(std::make_exception_ptr(42));
  CHECK(number.code == static_cast<std::uint16_t>(ErrorCode::remote_error));
  CHECK(number.type == "int");
  CHECK_FALSE(number.message.empty());
}

TEST_CASE("what another function threw is told as that one's where the called one never ran") {
  const auto thrown = std::make_exception_ptr(
      RemoteError("no disk", "std::runtime_error", "owner", "the constructor of Store", false));
  const auto never_ran = wire::error_frame(1, thrown, false);
  const auto body = wire::read_error(wire::parse_frame(never_ran));
  CHECK(body.message == "no disk");
  CHECK(body.type == "std::runtime_error");
  CHECK(body.function == "the constructor of Store");
  CHECK_FALSE(body.may_have_run);
  CapnpView view(never_ran);
  CHECK(std::string((*view).getError().getFunction().cStr()) == body.function);
  const auto passed_on = wire::error_frame(1, thrown, true);
  const auto nested = wire::read_error(wire::parse_frame(passed_on));
  CHECK(nested.function.empty());
  CHECK(nested.message.find("the constructor of Store on owner threw") != std::string::npos);
  CHECK(nested.may_have_run);
}

TEST_CASE("of a function that had begun, no error promises that it did not run") {
  const auto body_of = [](const std::exception_ptr& error, bool began) {
    const auto words = wire::error_frame(1, error, began);
    return wire::read_error(wire::parse_frame(words));
  };
  const auto code = [](ErrorCode code_of) { return static_cast<std::uint16_t>(code_of); };
  const auto not_sent = std::make_exception_ptr(NotSent("its own call was not sent"));
  CHECK(body_of(not_sent, false).code == code(ErrorCode::not_sent));
  CHECK_FALSE(body_of(not_sent, false).may_have_run);
  CHECK(body_of(not_sent, true).code == code(ErrorCode::remote_error));
  CHECK(body_of(not_sent, true).type == "batchrpc::NotSent");
  CHECK(body_of(not_sent, true).may_have_run);
  const auto invalid = std::make_exception_ptr(InvalidArgument("not this"));
  CHECK(body_of(invalid, true).code == code(ErrorCode::invalid_argument));
  CHECK(body_of(invalid, true).may_have_run);
  const auto overloaded = std::make_exception_ptr(Overloaded("no room"));
  CHECK(body_of(overloaded, true).code == code(ErrorCode::overloaded));
  CHECK(body_of(overloaded, true).may_have_run);
  CHECK_FALSE(body_of(overloaded, false).may_have_run);
}

}  // namespace error_frame_test
}  // namespace batchrpc
