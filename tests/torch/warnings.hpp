#pragma once

#include <c10/util/Exception.h>
#include <torch/version.h>

#include <string>

namespace torch_test {

/// Collects LibTorch's warnings while a Guard for it exists.
class Warnings final : public c10::WarningHandler {
 public:
#if TORCH_VERSION_MAJOR < 2
  using Guard = c10::Warning::WarningHandlerGuard;
  void process(const c10::SourceLocation& /*where*/, const std::string& message,
               const bool /*verbatim*/) override {
    text += message;
  }
  static void always(bool on) { c10::Warning::set_warnAlways(on); }
#else
  using Guard = c10::WarningUtils::WarningHandlerGuard;
  void process(const c10::Warning& warning) override { text += warning.msg(); }
  static void always(bool on) { c10::WarningUtils::set_warnAlways(on); }
#endif
  std::string text;
};

}  // namespace torch_test
