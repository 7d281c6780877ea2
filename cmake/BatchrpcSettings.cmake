# Compiler settings of this project. Nothing in this file affects a project that uses the library.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

  find_program(BATCHRPC_CCACHE ccache)
  mark_as_advanced(BATCHRPC_CCACHE)
  if(BATCHRPC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # ccache needs this sloppiness to cache a file that uses a precompiled header. With paths relative to the
    # base, one build folder can use the cached files of another.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
        CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${BATCHRPC_CCACHE})
  endif()

  # Four times as fast as binutils' linker.
  find_program(BATCHRPC_LLD ld.lld)
  mark_as_advanced(BATCHRPC_LLD)
  if(BATCHRPC_LLD AND NOT "${CMAKE_EXE_LINKER_FLAGS}${CMAKE_SHARED_LINKER_FLAGS}" MATCHES "-fuse-ld=|-flto")
    add_link_options(-fuse-ld=lld)
  endif()

  if(BATCHRPC_SANITIZE)
    string(REPLACE ";" "," sanitizers "${BATCHRPC_SANITIZE}")
    add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${sanitizers})
    if(sanitizers MATCHES "address.*undefined")
      # The address sanitizer finds these too, and these checks take longest to compile.
      add_compile_options(-fno-sanitize=null,object-size)
    endif()
    if(sanitizers MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-Wno-tsan)  # Asio's fences, which g++'s thread sanitizer does not support
    endif()
  endif()
endif()

# Position-independent throughout, because a static libbatchrpc.a may be part of a user's shared library. As a
# flag, because CMake's own setting compiles programs with -fPIE, and they could not share a precompiled
# header with the libraries.
add_compile_options(-fPIC)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

function(batchrpc_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms, GCC bug 105651
  endif()
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # In a unity build g++ treats a file as a header, whose types other files could use.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(BATCHRPC_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# O0 or O1, for code that runs briefly: optimizing it would take longer than it saves. Not
# in a debug build, where nothing is optimized, precompiled headers neither.
function(batchrpc_optimize target level)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-${level}>)
endfunction()
