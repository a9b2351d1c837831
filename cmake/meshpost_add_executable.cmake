# Also part of the installed package: users and the project compile kernels in the same way.

# Compiles sources with kernels for every kind of device that the library has: by nvcc if it has
# CUDA.
function(meshpost_kernel_sources target)
  if(MESHPOST_CUDA)
    foreach(source IN LISTS ARGN)
      set_source_files_properties(${source} PROPERTIES LANGUAGE CUDA)
    endforeach()
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Wno-deprecated-gpu-targets>")
  endif()
endfunction()

# meshpost_add_executable(name sources...): a program whose sources hold kernels.
function(meshpost_add_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE meshpost::meshpost)
  meshpost_kernel_sources(${name} ${ARGN})
endfunction()
