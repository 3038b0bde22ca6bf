# Standalone Asio (header only; Debian: libasio-dev). Defines asio::asio.
find_path(ASIO_INCLUDE_DIR asio.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Asio REQUIRED_VARS ASIO_INCLUDE_DIR)
if(Asio_FOUND AND NOT TARGET asio::asio)
    include(${CMAKE_CURRENT_LIST_DIR}/plait_header_only.cmake)
    plait_header_only(asio::asio ${ASIO_INCLUDE_DIR} asio asio.hpp)
    # Asio 1.22 does not detect clang's coroutines.
    target_compile_definitions(asio::asio INTERFACE ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE ASIO_STANDALONE ASIO_NO_DEPRECATED)
endif()
