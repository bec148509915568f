# Warnings every target of this project is compiled with. g++ 12 sees overlaps in std::string's operator+ that are
# not there (GCC bug 105651), so -Wrestrict is off for it.
add_library(tbdsim_warnings INTERFACE)
target_compile_options(tbdsim_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${TBDSIM_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>>)
