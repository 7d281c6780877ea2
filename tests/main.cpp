#define CATCH_CONFIG_RUNNER
#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {
std::atomic<int> threads_started{0};  // counted under the address sanitizer only
bool some_lacks_tag = false;          // a test case has started threads without the tag [threads]
}  // namespace

// The thread sanitizer does not see how libstdc++.so counts who holds an exception, and takes its
// end for a race with those who looked at it before.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}

#ifdef BATCHRPC_TEST_COUNTS_THREADS
// In place of the address sanitizer's own, which it calls.
extern "C" int __interceptor_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                            void* (*run)(void*), void* argument);
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*run)(void*), void* argument) {
  ++threads_started;
  return __interceptor_pthread_create(thread, attributes, run, argument);
}
#endif

namespace {

/// Reports each test case to the file BATCHRPC_TEST_LOG as it starts and ends, for
/// scripts/run_tests.py: "start\t<name>", then "<outcome>\t<seconds>\t<name>\t<why it was left
/// out>". A test case that starts threads without the tag [threads] fails, because the thread
/// sanitizer would not run it.
class CaseLog final : public Catch::TestEventListenerBase {
 public:
  using Catch::TestEventListenerBase::TestEventListenerBase;

  void testRunStarting(const Catch::TestRunInfo& /*run*/) override {
    if (const char* const path = std::getenv("BATCHRPC_TEST_LOG")) file_ = std::fopen(path, "w");
  }

  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    missing_.clear();
    threads_before_ = threads_started;
    begin_ = std::chrono::steady_clock::now();
    if (file_ == nullptr) return;
    std::fprintf(file_, "start\t%s\n", test.name.c_str());
    std::fflush(file_);
  }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    constexpr const char* kLeftOut = "left out: ";
    const auto& result = stats.assertionResult;
    if (result.getResultType() == Catch::ResultWas::Warning) {
      std::string text = result.hasMessage() ? static_cast<std::string>(result.getMessage()) : "";
      for (const auto& info : stats.infoMessages)
        if (info.type == Catch::ResultWas::Warning) text = info.message;
      if (text.rfind(kLeftOut, 0) == 0)
        missing_ = text.substr(std::char_traits<char>::length(kLeftOut));
    }
    return false;
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const bool lacks_tag = threads_started != threads_before_ &&
                           stats.testInfo.tagsAsString().find("[threads]") == std::string::npos;
    if (lacks_tag) {
      std::fprintf(stderr, "\"%s\" starts threads; give it the tag [threads]\n",
                   stats.testInfo.name.c_str());
      some_lacks_tag = true;
    }
    if (file_ == nullptr) return;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
    const char* const outcome = lacks_tag || !stats.totals.testCases.allOk() ? "failed"
                                : missing_.empty()                           ? "passed"
                                                                             : "left out";
    std::fprintf(file_, "%s\t%.3f\t%s\t%s\n", outcome, took.count(), stats.testInfo.name.c_str(),
                 missing_.c_str());
    std::fflush(file_);
  }

 private:
  std::FILE* file_ = nullptr;
  int threads_before_ = 0;  // threads_started when the running test began
  std::chrono::steady_clock::time_point begin_;
  std::string missing_;  // what the running test needs and does not find
};
CATCH_REGISTER_LISTENER(CaseLog)

}  // namespace

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed == 0 && some_lacks_tag ? 1 : failed;
}
