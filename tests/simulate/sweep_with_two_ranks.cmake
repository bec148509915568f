# A sweep under mpirun, in rows and chosen, against the same one in a single process.
set(sweep sweep --model resnet50 --framework mxnet --gpu titanxp,t4,p4000 --batch 1:900)
foreach(choice IN ITEMS "" "--best;throughput;--per;gpu")
  execute_process(COMMAND ${PROGRAM} ${sweep} ${choice} OUTPUT_VARIABLE alone RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "one process: ${failed}")
  endif()
  execute_process(COMMAND ${MPIRUN} --oversubscribe -n 2 ${PROGRAM} ${sweep} ${choice}
                  OUTPUT_VARIABLE together ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(failed OR NOT together STREQUAL alone)
    message(FATAL_ERROR "two ranks: ${failed} ${said}")
  endif()
endforeach()
