function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(result)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -G Ninja
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D CMAKE_BUILD_TYPE=${BUILD_TYPE})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)

# prints(PATTERN COMMAND...): it succeeds and its output matches.
function(prints pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output)
  if(result OR NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${ARGN}: exit code ${result}, expected ${pattern} in\n${output}")
  endif()
endfunction()

prints("^[0-9]+ images/s, .* GiB\ncompute +[0-9.]+ %\n" ${WORK_DIR}/build/predict)
prints("^model,framework,gpu,batch,throughput,memory_total,status\nresnet50,mxnet,titanxp,4,.*,p4000,64," ${WORK_DIR}/build/sweep)
prints("my_gpu.yaml +[0-9]+ images/s.*h100_sxm +[0-9]+ images/s" ${WORK_DIR}/build/own_gpu ${SOURCE_DIR}/my_gpu.yaml)
prints("^kernel [0-9]+ of [0-9]+: .*total +[0-9.]+ ms" ${WORK_DIR}/build/kernel_breakdown)
# The installed program finds the installed catalogue, not the source tree.
run(${WORK_DIR}/prefix/bin/tbd-sim --gpu titanxp --batch 64 -o ${WORK_DIR}/table.txt)
