# Unity builds: headers are most of what the compiler reads, so several sources of a folder are compiled as one.

option(MESHPOST_UNITY "Compile several sources of a folder as one" ON)

# Sources of `target`, grouped by folder, at most `most` in a group. CMake leaves out what nvcc compiles.
# Names in anonymous namespaces must differ between the sources of a folder.
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
    # As even as can be: the last group of a folder is not a lone source that all wait for.
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
  # GCC takes a source that is included for a header, and warns of its unnamed types.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
