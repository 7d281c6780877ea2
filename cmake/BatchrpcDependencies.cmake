# The dependencies of the library and its programs.

find_package(Threads REQUIRED)
find_package(CapnProto CONFIG REQUIRED)
# Its installed configuration cannot be read twice by a project, so ours defines this target itself.
add_library(batchrpc::capnp INTERFACE IMPORTED)
target_link_libraries(batchrpc::capnp INTERFACE CapnProto::capnp)
find_package(spdlog CONFIG REQUIRED)

find_path(ASIO_INCLUDE_DIR asio.hpp)
if(NOT ASIO_INCLUDE_DIR)
  message(FATAL_ERROR "batchrpc needs Asio (Debian: libasio-dev), found by -DASIO_INCLUDE_DIR=...")
endif()

if(BATCHRPC_TESTS)
  find_package(Catch2 2 CONFIG REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
  include(Catch)
endif()
if(BATCHRPC_EXAMPLES OR BATCHRPC_BENCHMARKS OR BATCHRPC_PEERS)
  find_package(CLI11 CONFIG REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)  # figures
endif()

find_package(OpenSSL 3 QUIET)  # for TCP and the status page

if(BATCHRPC_STATUS)
  include(BatchrpcHttplib)
  batchrpc_find_httplib(httplib_found)
  if(NOT httplib_found)
    set(why "no httplib.h: install cpp-httplib (Debian: libcpp-httplib-dev)")
    if(NOT BATCHRPC_STATUS STREQUAL "AUTO")
      message(FATAL_ERROR "batchrpc: BATCHRPC_STATUS is ${BATCHRPC_STATUS}, but ${why}")
    endif()
    message(STATUS "batchrpc: without the status page: ${why}")
  endif()
endif()

set(BATCHRPC_TLS_FOUND FALSE)
if(BATCHRPC_TLS)
  set(BATCHRPC_TLS_FOUND ${OPENSSL_FOUND})
  if(NOT OPENSSL_FOUND)
    set(why "no OpenSSL 3: install it (Debian: libssl-dev)")
    if(NOT BATCHRPC_TLS STREQUAL "AUTO")
      message(FATAL_ERROR "batchrpc: BATCHRPC_TLS is ${BATCHRPC_TLS}, but ${why}")
    endif()
    message(STATUS "batchrpc: without TLS: ${why}")
  endif()
endif()

include(BatchrpcTorch)
batchrpc_find_torch("${BATCHRPC_TORCH}")

# A project that uses add_subdirectory() links the targets found here, so they must be visible there too.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
endforeach()
