#include <torch/csrc/jit/serialization/import.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
#include <caffe2/serialize/inline_container.h>
#endif

#include <filesystem>
#include <fstream>

#include "torch/policy_files.hpp"
#include "torch/policy_networks.hpp"
#include "torch/tensors.hpp"

namespace batchrpc {
namespace policy_files_test {

namespace fs = std::filesystem;

using Catch::Matchers::Contains;
using torch_test::exported;
using torch_test::Folder;
using torch_test::kCompiled;
using torch_test::kFourFloats;
using torch_test::message_of;
using torch_test::Mlp;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refused(const std::string& path, const PolicyOptions& options = {}) {
  return message_of<InvalidArgument>([&] { (void)load_policy(path, options); });
}

/// What an eager policy of the same weights says.
void check_equal_to_eager(Policy& policy) {
  const auto module = std::make_shared<Mlp>();
  const torch::jit::Module script = torch::jit::load(exported("script.pt"));
  ModuleState state;
  for (const auto& parameter : script.named_parameters())
    state.parameters.emplace(parameter.name, parameter.value);
  load_state(*module, state);
  for (const std::int64_t rows : {1, 2, 3, 4, 9}) {
    const at::Tensor states = at::randn({rows, 4});
    const PolicyOutput output = policy.forward(states);
    const auto [logits, value] = module->forward(states);
    REQUIRE(output.tensors.size() == 2);
    CHECK(at::allclose(output.tensors[0], logits, 0, 1e-5));
    CHECK(at::allclose(output.tensors[1], value, 0, 1e-5));
  }
}

void check_updates(Policy& policy) {
  const ModuleState like = state_of(Mlp()).clone();
  CHECK(torch_test::is_never_torn(policy, like, 200));
  Mlp trained;
  policy.update(state_of(trained), 1000);
  const at::Tensor states = at::randn({3, 4});
  CHECK(at::allclose(policy.forward(states).tensors[0], std::get<0>(trained.forward(states)), 0,
                     1e-5));
  ModuleState wrong = like.clone();
  wrong.parameters.erase("value.bias");
  CHECK_THAT(message_of<InvalidArgument>([&] { policy.update(wrong, 1001); }),
             Contains("'value.bias' is missing"));
  wrong.parameters["value.bias"] = at::full({1}, std::numeric_limits<float>::quiet_NaN());
  CHECK_THAT(message_of<InvalidArgument>([&] { policy.update(wrong, 1001); }),
             Contains("'value.bias' has values that are not finite"));
  CHECK(policy.forward(states).version == 1000);
}

torch::jit::Module script_of(const std::string& source) {
  torch::jit::Module module("Test");
  module.register_parameter("first", at::zeros({1}), false);
  module.register_parameter("second", at::zeros({1}), false);
  module.define(source);
  return module;
}

const char* const kTwoWeights = R"(
def forward(self, states):
    return (states.select(1, 0) * 0 + self.first, states.select(1, 0) * 0 + self.second)
)";

TEST_CASE("TorchScript that C++ has made serves, frozen and updatable", "[policy]") {
  const Folder folder;
  const std::string path = (folder.path / "two.pt").string();
  script_of(kTwoWeights).save(path);
  const auto frozen = load_policy(path, {.observation = kFourFloats});
  CHECK(frozen->info().kind == PolicyKind::script);
  CHECK(torch_test::says_its_version(frozen->forward(at::ones({3, 4}))));
  const auto updatable = load_policy(path, {.updatable = true, .observation = kFourFloats});
  const ModuleState like{{{"first", at::zeros({1})}, {"second", at::zeros({1})}}, {}};
  CHECK(torch_test::is_never_torn(*updatable, like, 500));
}

TEST_CASE("TorchScript keeps to what it says of itself", "[policy]") {
  const Folder folder;
  const std::string path = (folder.path / "two.pt").string();
  const auto describe = [&](const std::string& more) {
    script_of(kTwoWeights)
        .save(path,
              {{"batchrpc_policy", "format 1\ntorch 1.13.0\nobservation float32 [4]\n" + more}});
  };
  describe("batch any\nweights frozen\n");
  CHECK_THAT(refused(path, {.updatable = true}), Contains("two.pt is frozen"));
  CHECK(load_policy(path)->info().weights.empty());
  describe("batch any\nweights updatable\nweight first float32 [2]\n");
  CHECK_THAT(refused(path, {.updatable = true}),
             Contains("two.pt has other weights than its description"));
  describe("batch any\nweights updatable\nweight first float32 [1]\nweight second float32 [1]\n");
  CHECK(load_policy(path, {.updatable = true})->info().weights.size() == 2);
  describe("batch 2\nweights updatable\n");
  const auto fixed = load_policy(path);
  CHECK(fixed->info().batch_sizes == std::vector<std::size_t>{2});
  CHECK(fixed->forward(at::ones({3, 4})).tensors[0].sizes() == at::IntArrayRef{3});

  script_of("def forward(self, x):\n    return x\n").save(path);  // weights that nobody can name
  torch::jit::Module frozen = torch::jit::load(path);
  frozen.eval();
  torch::jit::freeze(frozen).save(path);
  CHECK_THAT(refused(path, {.updatable = true, .observation = kFourFloats}),
             Contains("two.pt is frozen"));
}

TEST_CASE("TorchScript of Python says what the same network says in C++", "[policy]") {
  const std::string path = exported("script.pt");
  if (path.empty()) return;
  const auto frozen = load_policy(path, {.kind = PolicyKind::script});
  CHECK(frozen->info().observation == kFourFloats);
  check_equal_to_eager(*frozen);
  const auto updatable = load_policy(path, {.updatable = true});
  check_equal_to_eager(*updatable);
  check_updates(*updatable);
}

TEST_CASE("what is no TorchScript of a policy is refused", "[policy]") {
  const Folder folder;
  CHECK_THAT(refused(folder.write("text.pt", "hello")),
             Contains("text.pt is not a TorchScript policy"));
  CHECK_THAT(refused(folder.write("empty.pt", "")), Contains("is not a TorchScript policy"));
  const std::string good = (folder.path / "good.pt").string();
  script_of(kTwoWeights).save(good);
  CHECK(refused(good) == good +
                             " does not describe its observations: set "
                             "PolicyOptions::observation");
  CHECK_THAT(refused(good, {.observation = RowForm{at::kFloat, {}}}),
             Contains("good.pt failed to run with 1 rows of float32 []: Dimension out of range"));
  const std::string bytes = bytes_of(good);
  for (const std::size_t part : {4U, 2U}) {
    CHECK_THAT(refused(folder.write("cut.pt", bytes.substr(0, bytes.size() / part))),
               Contains("is not a TorchScript policy"));
  }
  const std::string other = (folder.path / "other.pt").string();
  script_of("def go(self, x):\n    return x\n").save(other);
  CHECK_THAT(refused(other, {.observation = kFourFloats}), Contains("is not a TorchScript policy"));
  script_of("def forward(self, x):\n    return [1, 2]\n").save(other);
  CHECK_THAT(refused(other, {.observation = kFourFloats}),
             Contains("must return a tensor, or a tuple or list of tensors"));
  script_of(kTwoWeights).save(other, {{"batchrpc_policy", "format 2\n"}});
  CHECK_THAT(refused(other), Contains("other.pt is a policy of 'format 2'"));
}

TEST_CASE("files that are no policies are refused by name", "[policy]") {
  const Folder folder;
  CHECK_THROWS_AS(load_policy((folder.path / "nothing.pt").string()), NotFound);
  CHECK_THAT(refused(folder.write("a.onnx", "")), Contains("a.onnx is not a policy: give"));
  CHECK_THAT(refused(folder.path.string()), Contains("has no packages (.pt2)"));
  CHECK(refused(folder.write("a.pt", ""), {.kind = PolicyKind::compiled}) ==
        (folder.path / "a.pt").string() +
            " is a policy of kind 'script', but PolicyOptions::kind is 'compiled'");
  CHECK_THAT(refused(folder.write("a.pt2", ""), {.kind = PolicyKind::script}),
             Contains("is a policy of kind 'compiled', but PolicyOptions::kind is 'script'"));
  if (kCompiled) {
    CHECK_THAT(refused(folder.write("a.pt2", "hello")),
               Contains("is not a package of AOTInductor"));
  } else {
    CHECK_THAT(refused(folder.write("a.pt2", "hello")),
               Contains("a.pt2 is a package of AOTInductor, which LibTorch " TORCH_VERSION
                        " does not run: build batchrpc with LibTorch 2.10 or later"));
  }
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)

TEST_CASE("compiled packages, one a batch size, say what the eager network says", "[policy]") {
  const std::string path = exported("frozen");
  if (path.empty()) return;
  const auto policy = load_policy(path, {.replicas = 2});
  CHECK(policy->info().kind == PolicyKind::compiled);
  CHECK_FALSE(policy->info().updatable);
  CHECK(policy->info().batch_sizes == std::vector<std::size_t>{1, 4});
  const std::vector<RowForm> outputs{{at::kFloat, {2}}, {at::kFloat, {}}};
  CHECK((policy->info().outputs == outputs));
  check_equal_to_eager(*policy);
}

TEST_CASE("a compiled package's weights change while it serves", "[policy]") {
  const std::string path = exported("updatable/any.pt2");
  if (path.empty()) return;
  const auto policy = load_policy(path, {.updatable = true, .replicas = 2});
  CHECK(policy->info().updatable);
  CHECK(policy->info().batch_sizes.empty());
  check_equal_to_eager(*policy);
  check_updates(*policy);
}

TEST_CASE("a compiled package takes weights that are parts of one tensor", "[policy]") {
  const std::string path = exported("updatable/any.pt2");
  if (path.empty()) return;
  const auto policy = load_policy(path, {.updatable = true});
  const ModuleState apart = state_of(Mlp()).clone();
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : apart.parameters)
    all.push_back(tensor.flatten());
  const at::Tensor one = at::cat(all);
  ModuleState parts;
  std::int64_t first = 0;
  for (const auto& [name, tensor] : apart.parameters) {
    parts.parameters.emplace(name, one.narrow(0, first, tensor.numel()).view_as(tensor));
    first += tensor.numel();
  }
  for (std::uint64_t version = 1; version <= 20; ++version)
    policy->update(parts, version);
  Mlp module;
  load_state(module, apart);
  const at::Tensor states = at::randn({3, 4});
  CHECK(at::allclose(policy->forward(states).tensors[0], std::get<0>(module.forward(states)), 0,
                     1e-5));
}

TEST_CASE("packages that are not what is asked for are refused", "[policy]") {
  const std::string frozen = exported("frozen");
  if (frozen.empty()) return;
  CHECK_THAT(refused(frozen, {.updatable = true}), Contains("1.pt2 is frozen: to change weights"));
  CHECK_THAT(refused(frozen + "/1.pt2", {.observation = RowForm{at::kFloat, {5}}}),
             Contains("1.pt2 takes observations of float32 [4], but PolicyOptions::observation is "
                      "float32 [5]"));
  const Folder folder;
  fs::copy(frozen + "/1.pt2", folder.path / "1.pt2");
  fs::copy(frozen + "/1.pt2", folder.path / "2.pt2");
  CHECK_THAT(refused(folder.path.string()), Contains("are for the same batch size"));
  fs::remove(folder.path / "2.pt2");
  fs::copy(exported("updatable/any.pt2"), folder.path / "any.pt2");
  CHECK_THAT(refused(folder.path.string()), Contains("belong to different policies"));
  CHECK_THAT(refused(folder.write("script.pt2", bytes_of(exported("script.pt")))),
             Contains("script.pt2 is not a package of AOTInductor"));
}

/// The same package, but that it says something else of itself.
std::string restated(const std::string& package, const std::string& path, const std::string& what,
                     const std::string& instead) {
  caffe2::serialize::PyTorchStreamReader from(package);
  caffe2::serialize::PyTorchStreamWriter to(path);
  for (const std::string& name : from.getAllRecords()) {
    if (name.starts_with(".data/") || name == "byteorder") continue;  // the writer's own
    const auto [data, size] = from.getRecord(name);
    std::string text(static_cast<const char*>(data.get()), size);
    const std::size_t at = name.ends_with("metadata.json") ? text.find(what) : text.npos;
    if (at != text.npos) text.replace(at, what.size(), instead);
    to.writeRecord(name, text.data(), text.size());
  }
  to.writeEndOfFile();
  return path;
}

TEST_CASE("a package that is marked as updatable and is frozen is refused", "[policy]") {
  const std::string frozen = exported("frozen/1.pt2");
  if (frozen.empty()) return;
  const Folder folder;
  const std::string same = restated(frozen, folder.path / "same.pt2", "frozen", "frozen");
  CHECK(load_policy(same)->info().batch_sizes == std::vector<std::size_t>{1});
  const std::string path = restated(frozen, folder.path / "other.pt2", "frozen", "updatable");
  CHECK_THAT(refused(path, {.updatable = true}),
             Contains("other.pt2 is marked as updatable, but '") &&
                 Contains("is part of its code: export it with always_keep_tensor_constants"));
}

TEST_CASE("packages with other weights than each other are refused", "[policy]") {
  const std::string frozen = exported("frozen");
  if (frozen.empty()) return;
  CHECK(load_policy(frozen)->info().batch_sizes == std::vector<std::size_t>{1, 4});
  const Folder folder;
  fs::copy(frozen + "/1.pt2", folder.path / "1.pt2");
  (void)restated(frozen + "/4.pt2", folder.path / "4.pt2", "state ", "state 0");  // of before, say
  CHECK_THAT(refused(folder.path.string()), Contains("have different weights"));
}

TEST_CASE("a package that is cut short is refused", "[policy]") {
  const std::string path = exported("frozen/1.pt2");
  if (path.empty()) return;
  const std::string bytes = bytes_of(path);
  const Folder folder;
  for (const std::size_t part : {100U, 2U}) {
    CHECK_THAT(refused(folder.write("cut.pt2", bytes.substr(0, bytes.size() / part))),
               Contains("cut.pt2 is not a package of AOTInductor"));
  }
}

#endif

}  // namespace policy_files_test
}  // namespace batchrpc
