# moodycamel::ConcurrentQueue (header only; Debian: libconcurrentqueue-dev). Defines concurrentqueue::concurrentqueue.
find_path(CONCURRENTQUEUE_INCLUDE_DIR concurrentqueue/concurrentqueue.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ConcurrentQueue REQUIRED_VARS CONCURRENTQUEUE_INCLUDE_DIR)
if(ConcurrentQueue_FOUND AND NOT TARGET concurrentqueue::concurrentqueue)
    add_library(concurrentqueue::concurrentqueue INTERFACE IMPORTED)
    target_include_directories(concurrentqueue::concurrentqueue SYSTEM INTERFACE ${CONCURRENTQUEUE_INCLUDE_DIR})
endif()
