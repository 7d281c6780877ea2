// parameter_cannot_be_sent<1, View>
#include <string>

#include "batchrpc/batchrpc.hpp"

struct View {
  int id;
  const std::string& text;
};
std::string show(const View& view) { return view.text; }

void refused(const batchrpc::Node& node) { node.expose<&show>(); }
