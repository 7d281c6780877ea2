// Runs our ResNet-50 with weights and images from Python, for check_resnet.py to compare.

#include <torch/nn/functional/loss.h>
#include <torch/serialize.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "parameter_server/resnet.hpp"

namespace {

using namespace batchrpc_examples;
using Tensors = c10::Dict<std::string, at::Tensor>;

// Reads a dict that Python's torch.save() wrote.
c10::impl::GenericDict read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.empty()) throw std::runtime_error("nothing to read: " + path);
  return torch::pickle_load(bytes).toGenericDict();
}

Tensors copies(const torch::OrderedDict<std::string, at::Tensor>& named) {
  Tensors result;
  for (const auto& item : named)
    result.insert(item.key(), item.value().detach().clone());
  return result;
}

void load(const torch::OrderedDict<std::string, at::Tensor>& named,
          const c10::impl::GenericDict& state) {
  for (const auto& item : named) {
    const auto found = state.find(item.key());
    if (found == state.end()) throw std::runtime_error(item.key() + " is missing in the input");
    const at::Tensor given = found->value().toTensor();
    if (given.sizes() != item.value().sizes()) {
      throw std::runtime_error(item.key() + " has another shape");
    }
    item.value().copy_(given);
  }
}

Tensors gradients(const ResNet50& model) {
  Tensors result;
  for (const auto& item : model->named_parameters())
    result.insert(item.key(), item.value().grad());
  return result;
}

int run(int argc, const char* const* argv) {
  if (argc != 3) throw UsageError("give two files; usage: resnet_outputs INPUT OUTPUT");
  const c10::impl::GenericDict input = read(argv[1]);
  const at::Tensor images = input.at("images").toTensor();
  const at::Tensor labels = input.at("labels").toTensor();

  ResNet50 model(labels.size(1), 543);
  c10::Dict<std::string, Tensors> output;
  output.insert("initial", copies(model->named_parameters()));

  {
    const at::NoGradGuard no_grad;
    const c10::impl::GenericDict state = input.at("state").toGenericDict();
    load(model->named_parameters(), state);
    load(model->named_buffers(), state);
  }
  Tensors outputs;
  model->eval();
  outputs.insert("eval", model->forward(images).detach());
  model->train();
  const at::Tensor trained = model->forward(images);
  const at::Tensor loss = torch::nn::functional::mse_loss(trained, labels);
  loss.backward();
  outputs.insert("train", trained.detach());
  outputs.insert("loss", loss.detach());
  output.insert("outputs", outputs);
  output.insert("gradients", gradients(model));
  output.insert("buffers", copies(model->named_buffers()));

  const std::vector<char> bytes = torch::pickle_save(output);
  std::ofstream out(argv[2], std::ios::binary);
  if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
    throw std::runtime_error(std::string("cannot write ") + argv[2]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_program("resnet_outputs", &run, argc, argv); }
