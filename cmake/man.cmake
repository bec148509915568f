# The target `man`, where help2man is installed: build/.../man/man1/*.1 from the program's own help. `cmake --install`
# takes them along once they are made.
find_program(TBDSIM_HELP2MAN help2man)
mark_as_advanced(TBDSIM_HELP2MAN)
if(TBDSIM_HELP2MAN)
  add_custom_target(man
    COMMAND ${PROJECT_SOURCE_DIR}/docs/man_pages.sh $<TARGET_FILE:tbd-sim> ${PROJECT_BINARY_DIR}/man/man1
    DEPENDS tbd-sim VERBATIM)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
endif()
