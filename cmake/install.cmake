# cmake --install build/release: the program, the libraries with their headers, the data, and a package that
# find_package(tbd-sim) finds.
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tbd-sim)

foreach(room IN ITEMS base hwspecs graphs captured hugging_face rewrites costmodel framework timeline memory workload communication
                      schedule layout plan prediction job analysis sweep validation)
  install(TARGETS tbdsim_${room} EXPORT tbd-sim-targets
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tbd-sim
          FILE_SET headers_alone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tbd-sim)
endforeach()
install(TARGETS tbdsim_simulate EXPORT tbd-sim-targets
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tbd-sim)
install(TARGETS tbd-sim tbd-calibrate)
tbdsim_install_data(${CMAKE_INSTALL_DATADIR}/tbd-sim)
install(EXPORT tbd-sim-targets NAMESPACE tbdsim:: DESTINATION ${config_dir})
configure_package_config_file(cmake/tbd-sim-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config.cmake
                              INSTALL_DESTINATION ${config_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config-version.cmake DESTINATION ${config_dir})
