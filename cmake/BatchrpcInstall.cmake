# The installed files: one export set for each part, so that a program
# that needs only the core never looks for LibTorch, nor for cpp-httplib.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/batchrpc)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/batchrpc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
install(TARGETS batchrpc EXPORT batchrpcTargets)
install(EXPORT batchrpcTargets NAMESPACE batchrpc:: DESTINATION ${config_dir})
if(TARGET batchrpc_status)
  install(TARGETS batchrpc_status EXPORT batchrpcStatusTargets)
  install(EXPORT batchrpcStatusTargets NAMESPACE batchrpc:: DESTINATION ${config_dir})
endif()
if(TARGET batchrpc_torch)
  install(TARGETS batchrpc_torch EXPORT batchrpcTorchTargets)
  install(EXPORT batchrpcTorchTargets NAMESPACE batchrpc:: DESTINATION ${config_dir})
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
