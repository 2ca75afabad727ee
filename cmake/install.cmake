# SPDX-License-Identifier: Apache-2.0
# `cmake --install` gives the programs, the pictures' scripts, and a package that find_package(lockstep) finds; its
# library is lockstep::lockstep-host, included as "host/sample.hpp".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS lockstep lockstep-bench)
install(TARGETS lockstep-host lockstep-targets lockstep-flags EXPORT lockstep)
foreach(folder kernels targets host)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(DIRECTORY bench/plot bench/studies DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep
        PATTERN __pycache__ EXCLUDE)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstep NAMESPACE lockstep:: FILE lockstepTargets.cmake DESTINATION ${package})
file(WRITE ${PROJECT_BINARY_DIR}/lockstepConfig.cmake [=[
include(CMakeFindDependencyMacro)
foreach(dependency ZLIB Eigen3 fmt nlohmann_json CLI11 OpenMP PkgConfig)
  find_dependency(${dependency})
endforeach()
pkg_check_modules(netcdf REQUIRED IMPORTED_TARGET netcdf)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
if(@LOCKSTEP_CUDA@)
  find_dependency(CUDAToolkit)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/lockstepTargets.cmake)
]=])
file(READ ${PROJECT_BINARY_DIR}/lockstepConfig.cmake config)
string(CONFIGURE "${config}" config @ONLY)
file(WRITE ${PROJECT_BINARY_DIR}/lockstepConfig.cmake "${config}")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstepConfig.cmake ${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake
        DESTINATION ${package})
