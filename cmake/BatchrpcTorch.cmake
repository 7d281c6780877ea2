# Finds LibTorch and defines the target batchrpc::libtorch. Used by the build and, if installed, by
# find_package(batchrpc COMPONENTS torch).
#
#   batchrpc_find_torch(AUTO|ON|OFF|<folder>)
#
# AUTO uses a LibTorch if there is one, else it reports why not; ON and a folder require one.
# The folder is LibTorch's own (with include/, lib/ and share/) or a prefix that LibTorch is installed
# in. Without a folder, CMAKE_PREFIX_PATH takes precedence over the system. BATCHRPC_TORCH_VERSION is set to
# the version found, or to nothing.

# A function, because LibTorch's configuration sets dozens of variables.
function(batchrpc_find_torch choice)
  set(BATCHRPC_TORCH_VERSION "" PARENT_SCOPE)
  if(choice STREQUAL "" OR choice MATCHES "^(OFF|NO|FALSE|0)$")
    message(STATUS "batchrpc: without LibTorch (BATCHRPC_TORCH is off)")
    return()
  endif()

  if(choice MATCHES "^(AUTO|ON|YES|TRUE|1)$")
    string(REPLACE ":" ";" prefixes "$ENV{CMAKE_PREFIX_PATH}")
    list(PREPEND prefixes ${Torch_ROOT} $ENV{Torch_ROOT} ${CMAKE_PREFIX_PATH})
    list(APPEND prefixes ${CMAKE_SYSTEM_PREFIX_PATH})
  elseif(IS_DIRECTORY "${choice}")
    set(prefixes "${choice}")
  else()
    message(FATAL_ERROR "batchrpc: BATCHRPC_TORCH is not a folder: ${choice}")
  endif()

  find_path(config_dir TorchConfig.cmake NO_CACHE NO_DEFAULT_PATH PATHS ${prefixes}
            PATH_SUFFIXES share/cmake/Torch lib/cmake/Torch Torch
                          lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Torch)
  string(REGEX REPLACE "/$" "" config_dir "${config_dir}")
  set(problem)
  if(config_dir)
    include(${config_dir}/TorchConfigVersion.cmake)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND PACKAGE_VERSION VERSION_LESS 2)
      string(CONCAT problem "clang cannot compile the headers of LibTorch ${PACKAGE_VERSION} in "
             "${config_dir} as C++20: use g++, or LibTorch 2 with -DBATCHRPC_TORCH=<folder>")
    endif()
  else()
    string(CONCAT problem "no TorchConfig.cmake in ${prefixes}: "
           "install LibTorch (Debian: libtorch-dev) or give -DBATCHRPC_TORCH=<folder>")
  endif()
  if(problem AND choice STREQUAL "AUTO")
    message(STATUS "batchrpc: without LibTorch: ${problem}")
    return()
  elseif(problem)
    message(FATAL_ERROR "batchrpc: ${problem}")
  endif()

  set(BATCHRPC_TORCH_VERSION ${PACKAGE_VERSION} PARENT_SCOPE)
  if(NOT TARGET batchrpc::libtorch)
    batchrpc_import_torch(${config_dir})
    message(STATUS "batchrpc: with LibTorch ${PACKAGE_VERSION} of ${config_dir} "
                   "(another by -DBATCHRPC_TORCH=<folder>)")
  endif()
endfunction()

function(batchrpc_import_torch config_dir)
  # TorchConfig.cmake searches for Caffe2, libc10 and others in the system's folders before LibTorch's
  # own, and a program that mixes this LibTorch with the system's aborts before main. The same happens
  # with a path cached from an earlier choice. These plain variables take precedence over both.
  string(REGEX REPLACE "/(share|lib|lib/[^/]*-linux-gnu)/cmake/Torch$" "" prefix "${config_dir}")
  set(Caffe2_DIR ${config_dir}/../Caffe2)
  foreach(library c10 torch c10_cuda torch_cuda torch_cpu caffe2_nvrtc)
    foreach(lib_dir lib lib/${CMAKE_LIBRARY_ARCHITECTURE})
      if(EXISTS ${prefix}/${lib_dir}/lib${library}.so)
        set(${library}_LIBRARY ${prefix}/${lib_dir}/lib${library}.so)
      endif()
    endforeach()
  endforeach()
  set(TORCH_LIBRARY ${torch_LIBRARY})
  set(C10_CUDA_LIBRARY ${c10_cuda_LIBRARY})
  set(CAFFE2_NVRTC_LIBRARY ${caffe2_nvrtc_LIBRARY})
  if(NOT kineto_LIBRARY)
    set(kineto_LIBRARY ${c10_LIBRARY})  # part of libtorch_cpu.so if there is no libkineto
  endif()

  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)  # hides its messages about other packages
  find_package(Torch CONFIG REQUIRED PATHS ${config_dir} NO_DEFAULT_PATH)
  if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(FATAL_ERROR "batchrpc: the LibTorch of ${config_dir} is built for the C++ ABI that "
                        "GCC had before version 5; use the build called cxx11-abi")
  endif()

  # Imported, so that its headers are system headers and give no warnings.
  add_library(batchrpc::libtorch INTERFACE IMPORTED)
  target_include_directories(batchrpc::libtorch INTERFACE ${TORCH_INCLUDE_DIRS})
  # PyTorch's builds export parts of their own C++ library, some of which crash (2.11 for CUDA:
  # std::filesystem::remove_all). So the program's own library must be searched first.
  if("stdc++" IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    target_link_libraries(batchrpc::libtorch INTERFACE stdc++)
  endif()
  target_link_libraries(batchrpc::libtorch INTERFACE ${TORCH_LIBRARIES})

  file(REAL_PATH /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/libblas.so.3 blas)
  if(prefix STREQUAL "/usr" AND blas MATCHES "/blas/libblas")
    message(WARNING "batchrpc: this LibTorch computes with the reference BLAS, several times slower "
                    "than necessary; install an OpenBLAS (Debian: libopenblas0-pthread)")
  endif()
endfunction()
