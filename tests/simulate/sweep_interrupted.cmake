# A sweep whose disk is full half-way leaves no FILE and goes on to the same bytes: alone, under mpirun and as a
# shard. A limit on the size of files stands for the disk.
set(sweep sweep --model resnet50 --framework mxnet --gpu titanxp,t4 --batch 1:700 --gpus 1,2 --network pcie3)
file(MAKE_DIRECTORY ${FOLDER})

function(run_to_end launcher file)
  execute_process(COMMAND ${launcher} ${PROGRAM} ${sweep} ${ARGN} -o ${file} ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${file}: ${failed} ${said}")
  endif()
endfunction()

# The limit is half of `whole`, in blocks of 512 bytes.
function(run_until_full file whole)
  string(REPLACE ";" " " words "${PROGRAM};${sweep};${ARGN}")
  file(SIZE ${whole} bytes)
  math(EXPR blocks "${bytes} / 1024")
  execute_process(COMMAND sh -c "trap '' XFSZ; ulimit -f ${blocks}; exec ${words} -o ${file}" TIMEOUT 60
                  ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(NOT failed EQUAL 2 OR EXISTS ${file} OR NOT EXISTS ${file}.part)
    message(FATAL_ERROR "full disk: ${failed} ${said}")
  endif()
  if(NOT said MATCHES "with more room the same command goes on")
    message(FATAL_ERROR "full disk: ${said}")
  endif()
endfunction()

function(expect_same file whole)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${file} ${whole} RESULT_VARIABLE differ)
  if(differ OR EXISTS ${file}.part)
    message(FATAL_ERROR "${file} is not ${whole}")
  endif()
endfunction()

foreach(shard IN ITEMS "" "--shard;1/2")
  file(REMOVE_RECURSE ${FOLDER})
  file(MAKE_DIRECTORY ${FOLDER})
  run_to_end("" ${FOLDER}/whole.csv ${shard})
  run_until_full(${FOLDER}/half.csv ${FOLDER}/whole.csv ${shard})
  foreach(launcher IN ITEMS "" "${MPIRUN};--oversubscribe;-n;2")
    if(NOT "${launcher}" STREQUAL "" AND NOT MPIRUN)
      continue()
    endif()
    file(COPY_FILE ${FOLDER}/half.csv.part ${FOLDER}/again.csv.part)
    file(COPY_FILE ${FOLDER}/half.csv.part.sweep ${FOLDER}/again.csv.part.sweep)
    run_to_end("${launcher}" ${FOLDER}/again.csv ${shard})
    expect_same(${FOLDER}/again.csv ${FOLDER}/whole.csv)
    file(REMOVE ${FOLDER}/again.csv)
  endforeach()
endforeach()

# A rank that cannot write ends the others, which would wait for it.
if(MPIRUN)
  execute_process(COMMAND ${MPIRUN} --oversubscribe -n 2 ${PROGRAM} ${sweep} -o ${FOLDER} TIMEOUT 60
                  ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(NOT failed EQUAL 2 OR NOT said MATCHES "is no regular file")
    message(FATAL_ERROR "a rank that fails: ${failed} ${said}")
  endif()
endif()

# A device is no file, and standard output may be full, too.
execute_process(COMMAND ${PROGRAM} ${sweep} -o /dev/full ERROR_VARIABLE said RESULT_VARIABLE failed)
if(NOT failed EQUAL 2 OR NOT said MATCHES "is no regular file")
  message(FATAL_ERROR "/dev/full: ${failed} ${said}")
endif()

# A link to a file is followed and stays; /dev/stdout leads to a plain file here, and is no name of one.
file(WRITE ${FOLDER}/behind.csv "")
file(CREATE_LINK ${FOLDER}/behind.csv ${FOLDER}/link.csv SYMBOLIC)
run_to_end("" ${FOLDER}/link.csv)
run_to_end("" ${FOLDER}/plain.csv)
expect_same(${FOLDER}/behind.csv ${FOLDER}/plain.csv)
if(NOT IS_SYMLINK ${FOLDER}/link.csv)
  message(FATAL_ERROR "the link was replaced")
endif()
execute_process(COMMAND ${PROGRAM} ${sweep} -o /proc/self/fd/1 OUTPUT_FILE ${FOLDER}/out.csv
                ERROR_VARIABLE said RESULT_VARIABLE failed)
if(NOT failed EQUAL 2 OR NOT said MATCHES "is no regular file")
  message(FATAL_ERROR "/proc/self/fd/1: ${failed} ${said}")
endif()
execute_process(COMMAND sh -c "${PROGRAM} sweep --model a3c --framework mxnet --gpu t4 --batch 1:9 > /dev/full"
                ERROR_VARIABLE said RESULT_VARIABLE failed)
if(NOT failed EQUAL 2 OR NOT said MATCHES "standard output cannot be written")
  message(FATAL_ERROR "> /dev/full: ${failed} ${said}")
endif()
file(REMOVE_RECURSE ${FOLDER})
