// parameter_cannot_be_sent<1, at::Tensor>
#include "batchrpc/batchrpc.hpp"

namespace at {
class Tensor {  // as in a program that includes torch/torch.h, and not batchrpc/torch.hpp
 public:
  Tensor();

 private:
  void* implementation_;
};
}  // namespace at
at::Tensor step(const at::Tensor& state);

void refused(const batchrpc::Node& node) { node.call<&step>("b", at::Tensor()).get(); }
