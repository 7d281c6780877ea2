#include "torch/policy_description.hpp"

#include "torch/tensors.hpp"

namespace batchrpc::detail {
namespace policy_description_test {

using Catch::Matchers::Contains;
using torch_test::message_of;

const std::string kText =
    "format 1\ntorch 2.13.0\ncpu AVX2\nobservation uint8 [4, 84, 84]\nbatch 16\n"
    "weights updatable\nweight conv1.bias float32 [16]\nweight steps int64 []\n";

std::string refused(const std::string& text) {
  return message_of<InvalidArgument>([&] { (void)parse_policy_description("a.pt2", text); });
}

std::string with(const std::string& line, const std::string& instead) {
  std::string text = kText;
  text.replace(text.find(line), line.size(), instead);
  return text;
}

TEST_CASE("a policy's file says what it is", "[policy]") {
  const PolicyDescription description = parse_policy_description("a.pt2", kText);
  CHECK(description.torch == "2.13.0");
  CHECK(description.cpu == "AVX2");
  CHECK(description.observation == RowForm{at::kByte, {4, 84, 84}});
  CHECK(description.batch == 16);
  CHECK(description.updatable);
  const WeightForms weights{{"conv1.bias", {at::kFloat, {16}}}, {"steps", {at::kLong, {}}}};
  CHECK((description.weights == weights));
  CHECK(parse_policy_description("a.pt2", with("batch 16", "batch any")).batch == 0);
  CHECK_FALSE(parse_policy_description("a.pt2", with("updatable", "frozen")).updatable);
}

TEST_CASE("a policy's file of another format is refused by name", "[policy]") {
  CHECK(refused(with("format 1", "format 2")) ==
        "a.pt2 is a policy of 'format 2', but this batchrpc reads 'format 1': export it again with "
        "its "
        "scripts/export_policy.py");
  CHECK_THAT(refused(""), Contains("of ''"));
}

TEST_CASE("what a policy's file does not say right is shown", "[policy]") {
  CHECK(refused(with("batch 16", "batch 0")) ==
        "a.pt2 contains the description 'batch 0': '0' is not a number from 1 to 65536; export it "
        "again with "
        "scripts/export_policy.py");
  CHECK_THAT(refused(with("batch 16", "batch 1.5")), Contains("'1.5' is not a number"));
  CHECK_THAT(refused(with("batch 16", "batch 99999999999999999999")), Contains("is not a number"));
  CHECK_THAT(refused(with("batch 16", "batch")), Contains("a size is missing"));
  CHECK_THAT(refused(with("batch 16", "batch 16 17")), Contains("'17' is unexpected"));
  CHECK_THAT(refused(with("batch 16", "colour red")), Contains("'colour' is unknown"));
  CHECK_THAT(refused(with("batch 16\n", "")), Contains("does not state its observation, batch"));
  CHECK_THAT(refused(with("batch 16", "")), Contains("a key is missing"));
  CHECK_THAT(refused(with("uint8", "uint9")), Contains("this LibTorch has no type 'uint9'"));
  CHECK_THAT(refused(with("[4, 84, 84]", "4 84 84")), Contains("'4 84 84' are not sizes"));
  CHECK_THAT(refused(with("[4, 84, 84]", "[4, -1]")), Contains("'-1' is not a number"));
  CHECK_THAT(refused(with("[4, 84, 84]", "[4,, 84]")), Contains("'' is not a number"));
  CHECK_THAT(refused(with("updatable", "melted")), Contains("'melted' is neither"));
  CHECK_THAT(refused(with("steps int64", "conv1.bias int64")), Contains("the name occurs twice"));
}

TEST_CASE("compiled code runs in the LibTorch and on the CPU that it was made for", "[policy]") {
  const PolicyDescription description = parse_policy_description("a.pt2", kText);
  CHECK_NOTHROW(require_made_for("a.pt2", description, "2.13.0", "AVX2"));
  CHECK_NOTHROW(require_made_for("a.pt2", description, "2.13.1", "AVX2"));
  CHECK(message_of<InvalidArgument>(
            [&] { require_made_for("a.pt2", description, "2.14.0", "AVX2"); }) ==
        "a.pt2 was made by LibTorch '2.13.0', but this is LibTorch 2.14.0, which cannot run its "
        "code: export it again with PyTorch 2.14.0");
  CHECK(message_of<InvalidArgument>(
            [&] { require_made_for("a.pt2", description, "2.13.0", "AVX512"); }) ==
        "a.pt2 was compiled for CPUs with AVX2, but this one has AVX512: export it again on this "
        "machine");
}

}  // namespace policy_description_test
}  // namespace batchrpc::detail
