# Settings of the whole build: compilers, warnings, sanitizers.

# Not CMAKE_CXX_STANDARD: CMake before 3.26 then wants the same of the CUDA compiler and does not
# know nvcc 13's flag.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX,CUDA>:-std=c++20>")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# GCC collects its garbage whenever its heap has grown by 130 MB or so. Without that it needs a
# quarter more memory and a tenth less time.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>")

if(MESHPOST_DEPS)
  list(PREPEND CMAKE_PREFIX_PATH ${MESHPOST_DEPS})
  include_directories(SYSTEM ${MESHPOST_DEPS}/include)
endif()

if(MESHPOST_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # The GPUs of this host; without one, Hopper, on which the figures were measured.
    execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
    if(no_gpu)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    else()
      set(CMAKE_CUDA_ARCHITECTURES native)
    endif()
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit 12.5 REQUIRED)
endif()

# The preset `kernels`, for machines without a GPU. nvcc's front end finds errors in kernels, and in
# the code of the host beside them. With -ptx nvcc stops there: the objects hold PTX and can't be
# linked. ptxas and the host's compiler, which take most of the time, see all our headers in the
# library, the benchmarks and the first example.
option(MESHPOST_PTX_ALONE "Compile kernels of tests, applications and examples no further than to PTX" OFF)
macro(meshpost_ptx_alone)  # targets that this folder and those below add from here on
  if(MESHPOST_CUDA AND MESHPOST_PTX_ALONE)
    set(CMAKE_CUDA_ARCHITECTURES 90-virtual)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-ptx;-Xcicc=-O0>")
  endif()
endmacro()

set(meshpost_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
                      -Wno-restrict)  # GCC 12 reports overlaps in std::string that do not exist (bug 105651)
add_library(meshpost_build INTERFACE)  # flags of our own sources; users choose their own
target_compile_options(meshpost_build INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${meshpost_warnings}>")

# For sources that take longer to compile than what they do takes to run.
set(meshpost_little_optimised "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")

# Of loops over numbers that are to become vector instructions of this machine's processor, and give
# the same bits everywhere: each sum and product is rounded by itself.
set(meshpost_vector_options -ffp-contract=off -fno-trapping-math -march=native)

if(MESHPOST_SANITIZE)
  add_compile_options(-fsanitize=${MESHPOST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # AddressSanitizer finds the same errors as these, and these take a seventh of the compile time.
  add_compile_options(-fno-sanitize=null,vptr,object-size,pointer-overflow)
  add_link_options(-fsanitize=${MESHPOST_SANITIZE})
endif()
