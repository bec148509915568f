# tbdsim_module(NAME SOURCES ... HEADERS ... PUBLIC ... PRIVATE ...)
# One folder of the architecture as one static library. Every header in HEADERS is compiled alone
# (target all_verify_interface_header_sets), third parties belong in PRIVATE.
function(tbdsim_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  add_library(tbdsim_${name} STATIC ${ARG_SOURCES})
  add_library(tbdsim::${name} ALIAS tbdsim_${name})
  target_sources(tbdsim_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(tbdsim_${name}
    PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:tbdsim_warnings>)
  target_compile_options(tbdsim_${name} PRIVATE ${TBDSIM_COVERAGE})
  target_compile_features(tbdsim_${name} PUBLIC cxx_std_20)
  set_target_properties(tbdsim_${name} PROPERTIES
    EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON POSITION_INDEPENDENT_CODE ON)
endfunction()
