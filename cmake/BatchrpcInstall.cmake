# What an installed batchrpc consists of: an export set for the core and for each component, so that a
# program never looks for what it does not use, such as LibTorch or cpp-httplib.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/batchrpc)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/batchrpc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
install(TARGETS batchrpc EXPORT batchrpcTargets)
install(EXPORT batchrpcTargets NAMESPACE batchrpc:: DESTINATION ${config_dir})
get_property(components GLOBAL PROPERTY BATCHRPC_COMPONENTS)
foreach(component IN LISTS components)
  install(TARGETS batchrpc_${component} EXPORT batchrpc_${component}_targets)
  install(EXPORT batchrpc_${component}_targets NAMESPACE batchrpc:: DESTINATION ${config_dir})
endforeach()

if(TARGET batchrpc-keys)
  install(TARGETS batchrpc-keys)
endif()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/batchrpcConfig.cmake.in ${PROJECT_BINARY_DIR}/batchrpcConfig.cmake
  INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/batchrpcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/batchrpcConfig.cmake
              ${PROJECT_BINARY_DIR}/batchrpcConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/BatchrpcHttplib.cmake
              ${PROJECT_SOURCE_DIR}/cmake/BatchrpcTorch.cmake
        DESTINATION ${config_dir})
