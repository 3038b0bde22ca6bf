# One floor of the house: a library from every source in the folder and a test program from every `*.test.cpp`
# beside it. Globbing is on purpose: adding an operation or a policy means adding a file, nothing else.
include_guard(GLOBAL)

# plait_floor(<name> [LINKS <target>...] [PRIVATE_LINKS <target>...] [TEST_LINKS <target>...])
#   Defines the library plait_<name> (alias plait::<name>) and, when tests are built, plait-<name>-tests with one
#   ctest entry for each test file, named <name>/<file> and labelled with the floor.
#   LINKS are what the floor's headers need, PRIVATE_LINKS only its sources.
#   A file under a folder called avx2/ or avx512/ is compiled for that instruction set, and only it; such files must
#   be reached through run-time dispatch. Folders called cuda/ are built by their own rules.
#   Every `*.fuzz.cpp` is a program of its own: a fuzzer with PLAIT_FUZZ, a test of its seeds otherwise.
function(plait_floor name)
    cmake_parse_arguments(PARSE_ARGV 1 floor "" "" "LINKS;PRIVATE_LINKS;TEST_LINKS")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
    set(tests ${sources})
    list(FILTER tests INCLUDE REGEX "\\.test\\.cpp$")
    set(fuzzers ${sources})
    list(FILTER fuzzers INCLUDE REGEX "\\.fuzz\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "\\.(test|fuzz)\\.cpp$")

    set(avx2 ${sources})
    list(FILTER avx2 INCLUDE REGEX "(^|/)avx2/")
    set(avx512 ${sources})
    list(FILTER avx512 INCLUDE REGEX "(^|/)avx512/")
    if(PLAIT_X86)
        set_source_files_properties(${avx2} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-mbmi2")
        set_source_files_properties(${avx512} PROPERTIES COMPILE_OPTIONS
            "-mavx2;-mfma;-mf16c;-mbmi2;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mprefer-vector-width=512")
    else()
        list(REMOVE_ITEM sources ${avx2} ${avx512})
    endif()

    add_library(plait_${name} STATIC ${sources})
    add_library(plait::${name} ALIAS plait_${name})
    set_target_properties(plait_${name} PROPERTIES EXPORT_NAME ${name})
    target_link_libraries(plait_${name} PUBLIC plait_base ${floor_LINKS} PRIVATE ${floor_PRIVATE_LINKS})

    if(PLAIT_TESTS AND tests)
        plait_tests(${name} SOURCES ${tests} LINKS plait_${name} ${floor_PRIVATE_LINKS} ${floor_TEST_LINKS})
    endif()
    if(PLAIT_TESTS)
        foreach(fuzzer IN LISTS fuzzers)
            plait_fuzzer(${name} ${fuzzer} LINKS plait_${name})
        endforeach()
    endif()
endfunction()
