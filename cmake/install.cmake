include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/meshpost)
install(TARGETS meshpost meshpost_dcuda meshpost_mp EXPORT meshpost)
install(DIRECTORY include/meshpost ${PROJECT_BINARY_DIR}/include/meshpost DESTINATION include
        PATTERN .clang-tidy EXCLUDE)
install(EXPORT meshpost NAMESPACE meshpost:: DESTINATION ${package} FILE meshpostTargets.cmake)
if(MESHPOST_HAS_MPI)  # a component of its own: users without it need no MPI
  set_property(GLOBAL APPEND PROPERTY meshpost_installed_targets meshpost_mpi)
  install(TARGETS meshpost_mpi EXPORT meshpost_mpi)
  install(EXPORT meshpost_mpi NAMESPACE meshpost:: DESTINATION ${package} FILE meshpostMpiTargets.cmake)
endif()
configure_package_config_file(cmake/meshpostConfig.cmake.in meshpostConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(meshpostConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/meshpostConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/meshpostConfigVersion.cmake
              cmake/meshpost_add_executable.cmake
        DESTINATION ${package})
