# Finds cpp-httplib and defines the target batchrpc::httplib. Used by the build and, if installed and
# static, by find_package(batchrpc COMPONENTS status), which only links it.
#
#   batchrpc_find_httplib(<result>)
#
# Debian compiles the library, with the settings in its pkg-config file; elsewhere it is header-only.
# <result> is set to whether it was found.
function(batchrpc_find_httplib result)
  set(${result} TRUE PARENT_SCOPE)
  if(TARGET batchrpc::httplib)
    return()
  endif()
  find_path(BATCHRPC_HTTPLIB_INCLUDE_DIR httplib.h)
  find_library(BATCHRPC_HTTPLIB_LIBRARY cpp-httplib)
  mark_as_advanced(BATCHRPC_HTTPLIB_INCLUDE_DIR BATCHRPC_HTTPLIB_LIBRARY)
  if(NOT BATCHRPC_HTTPLIB_INCLUDE_DIR)
    set(${result} FALSE PARENT_SCOPE)
    return()
  endif()

  # Imported, so that its header is a system header and gives no warnings.
  add_library(batchrpc::httplib INTERFACE IMPORTED)
  target_include_directories(batchrpc::httplib INTERFACE ${BATCHRPC_HTTPLIB_INCLUDE_DIR})
  if(BATCHRPC_HTTPLIB_LIBRARY)
    target_link_libraries(batchrpc::httplib INTERFACE ${BATCHRPC_HTTPLIB_LIBRARY})
    # With other settings than those of the compiled library, the header would define other classes.
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(BATCHRPC_HTTPLIB_PC QUIET cpp-httplib)
      target_compile_options(batchrpc::httplib INTERFACE ${BATCHRPC_HTTPLIB_PC_CFLAGS_OTHER})
    endif()
  endif()
endfunction()
