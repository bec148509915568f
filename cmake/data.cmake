# tbdsim_install_data(DESTINATION [COMPONENT NAME]): installs what the program reads when it runs, in the folders of the
# repository.
function(tbdsim_install_data destination)
  foreach(folder IN ITEMS hwspecs/gpus hwspecs/cpus hwspecs/links hwspecs/machines graphs/models graphs/suites graphs/datasets
                          graphs/convergence simulate/presets simulate/frameworks simulate/validation/observations
                          simulate/validation/benchmarks calibrate/profiles)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${destination}/${folder} ${ARGN}
            FILES_MATCHING PATTERN "*.yaml")
  endforeach()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/simulate/validation/runs/ DESTINATION ${destination}/simulate/validation/runs ${ARGN}
          FILES_MATCHING PATTERN "*.csv")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/simulate/report/html/assets/
          DESTINATION ${destination}/simulate/report/html/assets ${ARGN} USE_SOURCE_PERMISSIONS)
endfunction()
