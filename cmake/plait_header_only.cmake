# plait_header_only(<target> <include dir> <entry>...)
#   Defines the imported target of a header-only library whose entries (files or folders) stand in <include dir>.
#   When cross-compiling they are linked into a folder of their own: the host's whole /usr/include must not be searched.
include_guard(GLOBAL)

function(plait_header_only target directory)
    if(CMAKE_CROSSCOMPILING)
        set(private ${CMAKE_BINARY_DIR}/headers)
        file(MAKE_DIRECTORY ${private})
        foreach(entry IN LISTS ARGN)
            file(CREATE_LINK ${directory}/${entry} ${private}/${entry} SYMBOLIC)
        endforeach()
        set(directory ${private})
    endif()
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} SYSTEM INTERFACE ${directory})
endfunction()
