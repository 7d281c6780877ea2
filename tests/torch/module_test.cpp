#include "batchrpc/torch/module.hpp"

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace module_test {

using Catch::Matchers::Contains;
using torch_test::identical;
using torch_test::message_of;
using torch_test::round_trip;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    hidden = register_module("hidden", torch::nn::Linear(4, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    output =
        register_module("output", torch::nn::Linear(torch::nn::LinearOptions(8, 2).bias(false)));
  }
  torch::nn::Linear hidden{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear output{nullptr};
};
TORCH_MODULE(Net);

bool identical_states(const ModuleState& a, const ModuleState& b) {
  const auto same = [](const auto& x, const auto& y) {
    if (x.size() != y.size()) return false;
    for (const auto& [name, tensor] : x) {
      if (!y.contains(name) || !identical(tensor, y.at(name))) return false;
    }
    return true;
  };
  return same(a.parameters, b.parameters) && same(a.buffers, b.buffers);
}

TEST_CASE("a module's state has its parameters and buffers by name", "[module]") {
  Net net;
  const ModuleState state = state_of(*net);
  CHECK(state.parameters.size() == 5);  // output has no bias
  CHECK(state.buffers.size() == 3);
  CHECK(identical(state.parameters.at("hidden.weight"), net->hidden->weight));
  CHECK(identical(state.buffers.at("norm.running_mean"), net->norm->running_mean));
  CHECK_FALSE(state.parameters.at("hidden.weight").requires_grad());
}

TEST_CASE("a state shares the module's memory, its clone does not", "[module]") {
  Net net;
  const ModuleState state = state_of(*net);
  const ModuleState clone = state.clone();
  CHECK(state.parameters.at("hidden.weight").data_ptr() == net->hidden->weight.data_ptr());
  CHECK(identical_states(clone, state));
  net->hidden->weight.data().zero_();
  CHECK(identical(state.parameters.at("hidden.weight"), net->hidden->weight));
  CHECK_FALSE(identical_states(clone, state));
}

TEST_CASE("a state is loaded in place, unseen by autograd", "[module]") {
  const Net from;
  Net to;
  const void* const memory = to->hidden->weight.data_ptr();
  from->norm->running_mean.fill_(3);
  load_state(*to, round_trip(state_of(*from)));
  CHECK(identical_states(state_of(*to), state_of(*from)));
  CHECK(to->hidden->weight.data_ptr() == memory);
  CHECK(to->hidden->weight.requires_grad());
  CHECK(to->hidden->weight.is_leaf());
  to->output(to->hidden(at::ones({1, 4}))).sum().backward();
  CHECK(to->hidden->weight.grad().defined());
}

TEST_CASE("values are converted to the module's types", "[module]") {
  Net net;
  ModuleState state = state_of(*net).clone();
  at::Tensor& weight = state.parameters.at("hidden.weight");
  weight = weight.fill_(0.5).to(at::kHalf);
  load_state(*net, state);
  CHECK(net->hidden->weight.scalar_type() == at::kFloat);
  CHECK(at::all(net->hidden->weight == 0.5).item<bool>());
}

TEST_CASE("a state that does not fit is refused whole, and every difference is named", "[module]") {
  Net net;
  const ModuleState before = state_of(*net).clone();
  ModuleState state = state_of(*Net()).clone();
  state.parameters.erase("hidden.bias");
  state.parameters["hidden.weight"] = at::zeros({8, 5});
  state.parameters["hidden.extra"] = at::zeros({1});
  state.buffers["norm.running_var"] = at::Tensor();
  CHECK_THAT(message_of<InvalidArgument>([&] { load_state(*net, state); }),
             Contains("parameter 'hidden.bias' is missing from the state") &&
                 Contains("parameter 'hidden.weight' is float32 [8, 4] in the module and "
                          "float32 [8, 5] in the state") &&
                 Contains("the module has no parameter 'hidden.extra'") &&
                 Contains("buffer 'norm.running_var'") && Contains("undefined"));
  CHECK(identical_states(state_of(*net), before));
}

TEST_CASE("a learner's weights travel to an actor", "[module]") {
  const test::VirtualWorld world;
  const Node learner = world.root("learner");
  const Node actor = world.join("actor");
  const Net trained;
  Net own;
  learner.expose("weights", [&] { return state_of(*trained).clone(); });
  load_state(*own, actor.call<ModuleState()>("learner", "weights").get());
  CHECK(identical_states(state_of(*own), state_of(*trained)));
}

}  // namespace module_test
}  // namespace batchrpc
