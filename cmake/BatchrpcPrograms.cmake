# Programs, and the precompiled headers that they share.

# batchrpc_pch(<target> <owner>): <target> uses the precompiled header of <owner>, which is compiled with
# the same options.
function(batchrpc_pch target owner)
  target_precompile_headers(${target} REUSE_FROM ${owner})
  if(BATCHRPC_CCACHE)  # without these ccache gives up, or returns files that clang rejects
    target_compile_options(
      ${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                        $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()

# batchrpc_pch_owner(<name> <header>...): precompiles these headers; the caller sets other options.
function(batchrpc_pch_owner name)
  set(empty ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  file(GENERATE OUTPUT ${empty} CONTENT "\n")
  add_library(${name} OBJECT ${empty})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  batchrpc_warnings(${name})
  target_compile_options(
    ${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

# torch/torch.h takes some ten seconds per file. It is compiled here once for the library, the
# programs and the tests.
function(batchrpc_torch_pch target)
  if(NOT TARGET batchrpc_torch_pch)
    batchrpc_pch_owner(batchrpc_torch_pch <torch/torch.h>)
    target_link_libraries(batchrpc_torch_pch PRIVATE batchrpc::batchrpc batchrpc::libtorch)
  endif()
  batchrpc_pch(${target} batchrpc_torch_pch)
endfunction()

# batchrpc_programs(<program that needs LibTorch>...): the programs of the calling folder.
#   NAME.cpp     program NAME
#   NAME/*.cpp   program NAME from main.cpp; the other files form the library NAME_lib, also for tests;
#                among them options.cpp and report.cpp (command lines, JSON) are templates
#                that take long to optimize but run once: with -O1
#                The precompiled torch/torch.h takes seconds to load: only NAME_lib uses it, besides programs
#                of one file. Users copy those, so they include all that they use themselves.
#   common/*.cpp library batchrpc_<folder>_common, which all link, without LibTorch
function(batchrpc_programs)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(common batchrpc_${folder}_common)
  file(GLOB sources CONFIGURE_DEPENDS common/*.cpp)
  set(libraries batchrpc::batchrpc CLI11::CLI11 nlohmann_json::nlohmann_json)
  if(TARGET batchrpc_examples_common AND NOT folder STREQUAL examples)
    list(PREPEND libraries batchrpc_examples_common)  # benchmarks use the examples' helpers
  endif()
  if(sources)
    add_library(${common} STATIC ${sources})
    batchrpc_program_settings(${common})
    batchrpc_program_pch(${common} FALSE)
    target_link_libraries(${common} PUBLIC ${libraries} PkgConfig::CAIRO ${CMAKE_DL_LIBS})
    list(PREPEND libraries ${common})
  endif()

  file(GLOB files CONFIGURE_DEPENDS *.cpp */*.cpp)
  set(names ${files})
  list(TRANSFORM names REPLACE "^${CMAKE_CURRENT_SOURCE_DIR}/" "")
  list(TRANSFORM names REPLACE "(/.*|\\.cpp)$" "")
  list(REMOVE_DUPLICATES names)
  list(REMOVE_ITEM names common)
  foreach(name IN LISTS names)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/CMakeLists.txt)  # it defines its own targets
      continue()
    endif()
    set(torch FALSE)
    if(name IN_LIST ARGN)
      set(torch TRUE)
      if(NOT TARGET batchrpc::torch)
        message(STATUS "batchrpc: without ${folder}/${name}, which needs LibTorch")
        continue()
      endif()
    endif()

    set(main ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp)
    set(rest)
    if(NOT EXISTS ${main})
      set(rest ${files})
      list(FILTER rest INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${name}/")
      set(main ${CMAKE_CURRENT_SOURCE_DIR}/${name}/main.cpp)
      list(REMOVE_ITEM rest ${main})
    endif()
    set(program_libraries ${libraries})
    if(torch)
      list(PREPEND program_libraries batchrpc::torch)
    endif()
    if(rest)
      set(text ${rest})
      list(FILTER text INCLUDE REGEX "/(options|report)\\.cpp$")
      if(text)
        add_library(${name}_text OBJECT ${text})
        batchrpc_program_settings(${name}_text)
        batchrpc_program_pch(${name}_text ${torch})
        batchrpc_optimize(${name}_text O1)
        target_link_libraries(${name}_text PRIVATE ${program_libraries})
        list(REMOVE_ITEM rest ${text})
        list(APPEND rest $<TARGET_OBJECTS:${name}_text>)
      endif()
      add_library(${name}_lib STATIC ${rest})
      batchrpc_program_settings(${name}_lib)
      if(torch)
        batchrpc_torch_pch(${name}_lib)
      else()
        batchrpc_program_pch(${name}_lib FALSE)
      endif()
      target_link_libraries(${name}_lib PUBLIC ${program_libraries})
      set_property(GLOBAL APPEND PROPERTY BATCHRPC_PROGRAM_LIBRARIES ${name}_lib)
      set(program_libraries ${name}_lib)
    endif()
    if(EXISTS ${main})
      add_executable(${name} ${main})
      batchrpc_program_settings(${name})
      if(rest)
        batchrpc_program_pch(${name} ${torch})
      elseif(torch)
        batchrpc_torch_pch(${name})
      endif()
      target_link_libraries(${name} PRIVATE ${program_libraries})
      set_property(GLOBAL APPEND PROPERTY BATCHRPC_PROGRAMS ${name})
    endif()
  endforeach()
endfunction()

function(batchrpc_program_settings target)
  batchrpc_warnings(${target})
  # For includes with quotes, "common/report.hpp", only: <compare> is not benchmarks/compare.
  target_compile_options(${target} PUBLIC "SHELL:-iquote ${CMAKE_CURRENT_SOURCE_DIR}")
endfunction()

# Precompiles the headers that take up to half of the compile time of a file without torch/torch.h. CLI11 is not among
# them, because its constants take seconds in each file that includes it. A precompiled header must be compiled with the
# definitions of its users, so programs with LibTorch have their own.
function(batchrpc_program_pch target torch)
  set(owner batchrpc_program_pch)
  if(torch)
    set(owner batchrpc_torch_program_pch)
  endif()
  if(NOT TARGET ${owner})
    batchrpc_pch_owner(${owner} <batchrpc/batchrpc.hpp> <nlohmann/json.hpp>)
    target_link_libraries(${owner} PRIVATE batchrpc::batchrpc nlohmann_json::nlohmann_json)
    if(torch)
      target_link_libraries(${owner} PRIVATE batchrpc::libtorch)
    endif()
  endif()
  batchrpc_pch(${target} ${owner})
endfunction()
