# Headers go to include/plait/<floor>/, the floors' libraries and a package file to lib/: find_package(plait) then
# gives plait::plait and one target for each floor.
include(CMakePackageConfigHelpers)
set(plait_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plait)

install(TARGETS plait plait_base ${plait_floor_targets} EXPORT plait_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT plait_targets NAMESPACE plait:: DESTINATION ${plait_package_dir} FILE plait_targets.cmake)
foreach(floor IN LISTS PLAIT_FLOORS)
    install(DIRECTORY ${floor} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plait FILES_MATCHING PATTERN "*.hpp"
        PATTERN "scalar" EXCLUDE PATTERN "wide" EXCLUDE PATTERN "avx2" EXCLUDE PATTERN "avx512" EXCLUDE)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plaitConfig.cmake.in ${PROJECT_BINARY_DIR}/plaitConfig.cmake
    INSTALL_DESTINATION ${plait_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/plaitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plaitConfig.cmake ${PROJECT_BINARY_DIR}/plaitConfigVersion.cmake
    cmake/FindAsio.cmake cmake/FindConcurrentQueue.cmake cmake/plait_header_only.cmake
    DESTINATION ${plait_package_dir})
install(FILES actors/dump/plait_gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/plait)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
