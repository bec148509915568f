# TBDSIM_SANITIZE=address,undefined instruments every target; a finding ends the program.
if(TBDSIM_SANITIZE)
  add_compile_options(-fsanitize=${TBDSIM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TBDSIM_SANITIZE})
endif()
if(TBDSIM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TBDSIM_FUZZ needs clang (libFuzzer); this is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  set(TBDSIM_COVERAGE -fsanitize=fuzzer-no-link)  # of modules with readers: fuzzers see which of their lines ran
endif()
