# Installs the build into an empty folder, builds a project that uses it, runs that project's program with its own
# kinds, and lets another reader look at the results.
file(REMOVE_RECURSE ${WORK})
foreach(command
    "${CMAKE_COMMAND};--install;${BUILD};--prefix;${WORK}/prefix"
    "${CMAKE_COMMAND};-S;${SOURCE};-B;${WORK}/build;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_BUILD_TYPE=${BUILD_TYPE}"
    "${CMAKE_COMMAND};--build;${WORK}/build"
    "${WORK}/build/consumer;kinds;nearest"
    "${WORK}/build/consumer;kinds;scaling"
    "${WORK}/build/consumer;--quiet;run;${SOURCE}/experiment.yaml;--output;${WORK}/runs"
    "${PYTHON};${SOURCE}/check_results.py;${WORK}/runs/consumer/latest/results.h5")
  execute_process(COMMAND ${command} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endforeach()
