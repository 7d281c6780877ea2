#include "games/games.hpp"

#include <batchrpc/base/error.hpp>
#include <map>

#include "games/breakout_pixels.hpp"
#include "games/cartpole.hpp"
#include "games/minatar_breakout.hpp"

namespace batchrpc_examples {
namespace {

template <class E>
std::unique_ptr<batchrpc::Env> make() {
  return std::make_unique<E>();
}

using Makers = std::map<std::string, std::unique_ptr<batchrpc::Env> (*)()>;

Makers makers() {
  return {{"cartpole", &make<CartPole>},
          {"minatar-breakout", &make<MinAtarBreakout>},
          {"pixels", &make<BreakoutPixels>}};
}

}  // namespace

std::vector<std::string> env_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers())
    names.push_back(name);
  return names;
}

std::unique_ptr<batchrpc::Env> make_env(const std::string& name) {
  const Makers all = makers();
  if (const auto found = all.find(name); found != all.end()) return found->second();
  std::string known;
  for (const auto& [each, maker] : all)
    known += (known.empty() ? "" : ", ") + each;
  throw batchrpc::InvalidArgument("unknown environment '" + name + "'; known are " + known);
}

}  // namespace batchrpc_examples
