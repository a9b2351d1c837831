# Unity builds: the compiler spends most of its time on headers, so several sources of a folder are
# compiled as one.

option(MESHPOST_UNITY "Compile several sources of a folder as one" ON)

# Sources of `target`, grouped by folder, at most `most` in a group. CMake leaves out sources that
# nvcc compiles. Names in anonymous namespaces must differ between the sources of a folder.
function(meshpost_unity target most)
  if(NOT MESHPOST_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} ABSOLUTE)
    get_filename_component(folder ${folder} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(APPEND folders ${folder})
    list(APPEND ${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    # Groups are as even as possible, so that no folder ends with a group of one source, which
    # delays the build.
    list(LENGTH ${folder} count)
    math(EXPR groups "(${count} + ${most} - 1) / ${most}")
    math(EXPR each "(${count} + ${groups} - 1) / ${groups}")
    set(number 0)
    foreach(source IN LISTS ${folder})
      math(EXPR group "${number} / ${each}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
      math(EXPR number "${number} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC treats an included source as a header, and warns of its unnamed types.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# The same groups for `sources` of kernels; CMake itself can make them from 3.31 on. Only for the
# preset `kernels`, which builds objects and no programs: machines that build for GPUs have more
# cores than groups.
function(meshpost_kernel_unity target)
  if(NOT MESHPOST_UNITY OR NOT MESHPOST_PTX_ALONE OR NOT MESHPOST_CUDA)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    get_source_file_property(group ${source} UNITY_GROUP)
    get_filename_component(path ${source} ABSOLUTE)
    list(APPEND groups ${group})
    string(APPEND text_${group} "#include \"${path}\"\n")
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    set(together ${CMAKE_CURRENT_BINARY_DIR}/kernels_of_${target}/${group}.cpp)
    file(CONFIGURE OUTPUT ${together} CONTENT "${text_${group}}" @ONLY)
    set_source_files_properties(${together} PROPERTIES LANGUAGE CUDA)
    target_sources(${target} PRIVATE ${together})
  endforeach()
endfunction()
