#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

// The thread sanitizer does not see how libstdc++.so counts who holds an exception, and takes its
// end for a race with those who looked at it before.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
