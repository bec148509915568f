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
foreach(folder IN ITEMS hwspecs/gpus hwspecs/cpus hwspecs/links hwspecs/machines graphs/models graphs/suites graphs/datasets graphs/convergence
                        simulate/presets simulate/frameworks simulate/validation/observations simulate/validation/benchmarks calibrate/profiles)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tbd-sim/${folder} FILES_MATCHING PATTERN "*.yaml")
endforeach()
install(DIRECTORY simulate/validation/runs/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tbd-sim/simulate/validation/runs FILES_MATCHING PATTERN "*.csv")
install(DIRECTORY simulate/report/html/assets/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tbd-sim/simulate/report/html/assets USE_SOURCE_PERMISSIONS)
install(EXPORT tbd-sim-targets NAMESPACE tbdsim:: DESTINATION ${config_dir})
configure_package_config_file(cmake/tbd-sim-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config.cmake
                              INSTALL_DESTINATION ${config_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tbd-sim-config-version.cmake DESTINATION ${config_dir})
