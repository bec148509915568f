# Warnings every target of this project is compiled with. g++ 12 sees overlaps in std::string's operator+ that are
# not there (GCC bug 105651), so -Wrestrict is off for it.
add_library(tbdsim_warnings INTERFACE)
target_compile_options(tbdsim_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${TBDSIM_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>>)

# Floating point is the same in every target, so that a result does not depend on who compiled an inline function: no
# contraction of a * b + c (aarch64 would), and no code reads errno or the exception flags.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>
                    $<$<COMPILE_LANGUAGE:CXX>:-fno-trapping-math>)
