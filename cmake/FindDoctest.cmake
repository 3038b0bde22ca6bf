# doctest (header only; Debian: doctest-dev). Defines doctest::doctest.
find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Doctest REQUIRED_VARS DOCTEST_INCLUDE_DIR)
if(Doctest_FOUND AND NOT TARGET doctest::doctest)
    include(${CMAKE_CURRENT_LIST_DIR}/plait_header_only.cmake)
    plait_header_only(doctest::doctest ${DOCTEST_INCLUDE_DIR} doctest)
endif()
