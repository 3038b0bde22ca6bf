# Installs the build in BUILD into a fresh folder, then configures, builds and tests apps/examples of SOURCE against it,
# as a project of its own that knows plait by find_package(plait) alone.
set(prefix ${BUILD}/installed)
set(examples ${BUILD}/installed-examples)
file(REMOVE_RECURSE ${prefix} ${examples})

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "failed: ${ARGN}")
    endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE}/apps/examples -B ${examples} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
run(${CMAKE_COMMAND} --build ${examples} -j 2)

# Nothing of the source tree or of the build tree may be needed by what was installed.
file(GLOB_RECURSE package ${prefix}/*.cmake)
foreach(file IN LISTS package)
    file(READ ${file} content)
    foreach(path IN ITEMS ${BUILD} ${SOURCE})
        string(FIND "${content}" "${path}" at)
        if(NOT at EQUAL -1)
            message(FATAL_ERROR "${file} names ${path}")
        endif()
    endforeach()
endforeach()
