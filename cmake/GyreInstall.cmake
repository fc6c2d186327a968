# find_package(gyre) for other projects: target gyre::gyre.
include(CMakePackageConfigHelpers)

set(rooms core kernels autograd layers models data train)
foreach(room IN LISTS rooms)
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gyre FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE)
  install(TARGETS gyre_${room} EXPORT gyreTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(TARGETS gyre EXPORT gyreTargets)
install(EXPORT gyreTargets NAMESPACE gyre:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)
configure_package_config_file(cmake/gyreConfig.cmake.in gyreConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)
write_basic_package_version_file(gyreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gyreConfig.cmake ${PROJECT_BINARY_DIR}/gyreConfigVersion.cmake cmake/FindGyreOpenCV.cmake cmake/FindGyreDNNL.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/gyre)
