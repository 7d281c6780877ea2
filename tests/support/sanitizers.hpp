#pragma once

// The sanitizer that the tests are compiled with: BATCHRPC_TEST_ASAN, BATCHRPC_TEST_TSAN, each 0 or
// 1.

#ifdef __has_feature  // clang
#define BATCHRPC_TEST_ASAN __has_feature(address_sanitizer)
#define BATCHRPC_TEST_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define BATCHRPC_TEST_ASAN 1
#else
#define BATCHRPC_TEST_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define BATCHRPC_TEST_TSAN 1
#else
#define BATCHRPC_TEST_TSAN 0
#endif
#endif
