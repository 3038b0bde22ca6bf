# How tests are built: one program per floor, one ctest entry per file.
include_guard(GLOBAL)

# plait_test_support()
#   Defines plait_test_support, which every test links: doctest with its main program and what tests/support/ writes
#   (small models, files), compiled once, and PLAIT_SOURCE_DIR, the folder in which tests find tests/data.
function(plait_test_support)
    find_package(Doctest MODULE REQUIRED)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
    add_library(plait_test_support STATIC ${sources})
    target_link_libraries(plait_test_support PUBLIC plait_base doctest::doctest)
    target_compile_definitions(plait_test_support PUBLIC PLAIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# plait_tests(<label> SOURCES <file>... [LINKS <target>...])
#   Defines plait-<label>-tests. A file called real_* runs the real model: it is labelled `real` instead of `fast`,
#   takes all cores, and ctest counts it as skipped when it says "skipped: not found".
function(plait_tests label)
    cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LINKS")
    add_executable(plait-${label}-tests ${test_SOURCES})
    target_link_libraries(plait-${label}-tests PRIVATE ${test_LINKS} plait_test_support)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    foreach(file IN LISTS test_SOURCES)
        string(REGEX REPLACE "\\.test\\.cpp$" "" stem ${file})
        add_test(NAME ${label}/${stem} COMMAND plait-${label}-tests --source-file=*/${folder}/${file} --no-skipped-summary)
        set_tests_properties(${label}/${stem} PROPERTIES TIMEOUT ${PLAIT_TEST_TIMEOUT}
            FAIL_REGULAR_EXPRESSION "test cases: *0 "
            ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
        if(stem MATCHES "(^|/)real_")
            set_tests_properties(${label}/${stem} PROPERTIES LABELS "${label};real" RUN_SERIAL ON
                SKIP_REGULAR_EXPRESSION "skipped: not found")
        else()
            set_tests_properties(${label}/${stem} PROPERTIES LABELS "${label};fast")
        endif()
    endforeach()
endfunction()

# plait_fuzzer(<label> <file> [LINKS <target>...])
#   Defines plait-fuzz-<file> and a ctest entry. With PLAIT_FUZZ libFuzzer runs it for PLAIT_FUZZ_SECONDS, from what is
#   in tests/data/fuzz/<file>, labelled `long`; otherwise it runs those seeds alone, labelled `fast`.
function(plait_fuzzer label file)
    cmake_parse_arguments(PARSE_ARGV 2 fuzz "" "" "LINKS")
    string(REGEX REPLACE "\\.fuzz\\.cpp$" "" stem ${file})
    string(REPLACE "/" "-" program plait-fuzz-${stem})
    set(seeds ${PROJECT_SOURCE_DIR}/tests/data/fuzz/${stem})
    file(GLOB found CONFIGURE_DEPENDS ${seeds}/*)
    if(NOT found)
        message(FATAL_ERROR "${label}/${file} has no seeds: ${seeds} is not there or empty")
    endif()
    add_executable(${program} ${file})
    target_link_libraries(${program} PRIVATE ${fuzz_LINKS})
    if(NOT PLAIT_FUZZ)
        target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/run_seeds.cpp)
        add_test(NAME ${label}/seeds/${stem} COMMAND ${program} ${seeds})
        set_tests_properties(${label}/seeds/${stem} PROPERTIES LABELS "${label};fast" TIMEOUT ${PLAIT_TEST_TIMEOUT})
        return()
    endif()
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    math(EXPR timeout "${PLAIT_FUZZ_SECONDS} + 300")
    set(corpus ${PROJECT_BINARY_DIR}/corpus/${stem})
    file(MAKE_DIRECTORY ${corpus})
    add_test(NAME ${label}/fuzz/${stem}
        COMMAND ${program} -max_total_time=${PLAIT_FUZZ_SECONDS} -timeout=30 -rss_limit_mb=4096 ${corpus} ${seeds})
    set_tests_properties(${label}/fuzz/${stem} PROPERTIES LABELS "${label};long" TIMEOUT ${timeout})
endfunction()
