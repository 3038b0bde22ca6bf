# moodycamel::ConcurrentQueue (header only; Debian: libconcurrentqueue-dev). Defines concurrentqueue::concurrentqueue.
find_path(CONCURRENTQUEUE_INCLUDE_DIR concurrentqueue/concurrentqueue.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ConcurrentQueue REQUIRED_VARS CONCURRENTQUEUE_INCLUDE_DIR)
if(ConcurrentQueue_FOUND AND NOT TARGET concurrentqueue::concurrentqueue)
    include(${CMAKE_CURRENT_LIST_DIR}/plait_header_only.cmake)
    plait_header_only(concurrentqueue::concurrentqueue ${CONCURRENTQUEUE_INCLUDE_DIR} concurrentqueue)
endif()
