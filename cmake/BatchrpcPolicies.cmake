# Policies that tests load, exported by scripts/export_policy.py, if there is a Python that has a
# PyTorch of LibTorch's version. Sets BATCHRPC_POLICIES to their folder, or to nothing, and defines the
# target `policies`.

set(BATCHRPC_POLICIES "")
if(NOT TARGET batchrpc::libtorch)
  return()
endif()

set(imports "import torch")
if(BATCHRPC_TORCH_VERSION VERSION_GREATER_EQUAL 2)
  set(imports "import torch, sympy, jinja2, networkx")  # needed for compiling
endif()
if(NOT BATCHRPC_TORCH_PYTHON OR NOT BATCHRPC_TORCH_PYTHON_VERSION STREQUAL BATCHRPC_TORCH_VERSION)
  set(BATCHRPC_TORCH_PYTHON "" CACHE INTERNAL "Has a PyTorch of LibTorch's version")
  set(own ${BATCHRPC_TORCH}/../../../../bin/python3)  # the Python of the environment whose PyTorch contains this LibTorch
  foreach(python ${PROJECT_SOURCE_DIR}/.venv/torch2/bin/python ${own} /usr/bin/python3)
    execute_process(COMMAND ${python} -c "${imports}; print(torch.__version__)"
                    OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE status)
    string(REGEX MATCH "^[0-9]+[.][0-9]+[.][0-9]+" version "${said}")
    if(status EQUAL 0 AND version VERSION_EQUAL BATCHRPC_TORCH_VERSION)
      set(BATCHRPC_TORCH_PYTHON ${python} CACHE INTERNAL "Has a PyTorch of LibTorch's version")
      set(BATCHRPC_TORCH_PYTHON_VERSION ${BATCHRPC_TORCH_VERSION} CACHE INTERNAL "")
      break()
    endif()
  endforeach()
endif()
if(NOT BATCHRPC_TORCH_PYTHON)
  message(STATUS "batchrpc: no Python with PyTorch ${BATCHRPC_TORCH_VERSION}: tests load no exported policies")
  return()
endif()

set(BATCHRPC_POLICIES ${PROJECT_BINARY_DIR}/policies)
string(FIND ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/build/ place)
if(place EQUAL 0)  # a preset's build folder, which shares them with presets of the same LibTorch
  set(BATCHRPC_POLICIES ${PROJECT_SOURCE_DIR}/build/policies/torch-${BATCHRPC_TORCH_VERSION})
endif()
set(script ${PROJECT_SOURCE_DIR}/scripts/export_policy.py)
set(exported)
function(batchrpc_export network)  # <network> <argument of the script>...
  set(folder ${BATCHRPC_POLICIES}/${network})
  if("cuda" IN_LIST ARGN)
    string(APPEND folder -cuda)
  endif()
  string(JOIN " " what ${network} ${ARGN})
  string(MAKE_C_IDENTIFIER ${what} name)
  set(stamp ${BATCHRPC_POLICIES}/${name})
  add_custom_command(
    OUTPUT ${stamp} DEPENDS ${script}
    COMMAND ${BATCHRPC_TORCH_PYTHON} -W ignore ${script} ${network} ${folder} ${ARGN}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    COMMENT "Exporting policies for tests: ${what}")
  set(exported ${exported} ${stamp} PARENT_SCOPE)
endfunction()

foreach(network atari mlp two-mlps minatar)
  batchrpc_export(${network} --forms script)
endforeach()
if(BATCHRPC_TORCH_VERSION VERSION_GREATER_EQUAL 2.10)  # only the packages that tests need: each takes seconds
  batchrpc_export(mlp --forms frozen,dynamic --batch 1,4)
  batchrpc_export(mlp --forms updatable --batch any)
  batchrpc_export(two-mlps --forms updatable --batch any)
  batchrpc_export(minatar --forms updatable --batch 1,3)
  batchrpc_export(atari --forms frozen,updatable --batch 3)
  execute_process(COMMAND ${BATCHRPC_TORCH_PYTHON} -c "import torch; print(torch.cuda.is_available())"
                  OUTPUT_VARIABLE cuda ERROR_QUIET)
  if(cuda MATCHES True)
    batchrpc_export(mlp --forms updatable --batch 1,4 --device cuda)
  endif()
endif()
add_custom_target(policies DEPENDS ${exported})
