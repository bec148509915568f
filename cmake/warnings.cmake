# Warnings every target of this project is compiled with.
add_library(tbdsim_warnings INTERFACE)
target_compile_options(tbdsim_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${TBDSIM_WERROR}>:-Werror>>)
