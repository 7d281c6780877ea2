#include "rref/rref_messages.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

NoObject no_object(const ObjectId& object, const std::exception_ptr& why) {
  NoObject none{.object = object,
                .code = static_cast<std::uint16_t>(code_of(why)),
                .why = describe(why),
                .type = {},
                .maker = {}};
  try {
    std::rethrow_exception(why);
  } catch (const RemoteError& thrown) {
    none.why = thrown.thrown_what();
    none.type = thrown.type();
    none.maker = thrown.function();
  } catch (...) {  // NOLINT: that was all
  }
  return none;
}

std::exception_ptr error_of(const NoObject& none, std::string_view owner) {
  const auto code = static_cast<ErrorCode>(none.code);
  if (code != ErrorCode::remote_error) return make_error(code, none.why, false);
  return std::make_exception_ptr(RemoteError(none.why, none.type, owner, none.maker, false));
}

}  // namespace batchrpc::detail
