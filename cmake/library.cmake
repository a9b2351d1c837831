# The library itself: one target, with one folder for each part.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(MESHPOST_XXHASH_INCLUDE xxhash.h HINTS ${MESHPOST_DEPS}/include REQUIRED)  # checksums of data that cross a network
find_package(OpenSSL 3 REQUIRED COMPONENTS SSL Crypto)  # connections between the processes of a job
# Not find_package(Boost): it fails if only the headers and the archive in .deps exist.
find_path(MESHPOST_BOOST_INCLUDE boost/context/detail/fcontext.hpp REQUIRED)
find_library(MESHPOST_BOOST_CONTEXT NAMES boost_context libboost_context.a HINTS ${MESHPOST_DEPS}/lib REQUIRED)

# NUMA nodes and their devices; without it the host counts as one node.
find_path(MESHPOST_HWLOC_INCLUDE hwloc.h)
find_library(MESHPOST_HWLOC hwloc)
if(MESHPOST_HWLOC AND MESHPOST_HWLOC_INCLUDE)
  set(MESHPOST_HAS_HWLOC ON)
else()
  set(MESHPOST_HAS_HWLOC OFF)
  message(STATUS "hwloc not found: NUMA nodes will not be told apart")
endif()

# Processes on other hosts. The headers are enough: the library is loaded when it is used.
find_path(MESHPOST_OFI_INCLUDE rdma/fi_rma.h HINTS ${MESHPOST_DEPS}/include)
if(MESHPOST_OFI_INCLUDE)
  set(MESHPOST_HAS_OFI ON)
else()
  set(MESHPOST_HAS_OFI OFF)
  message(STATUS "libfabric's headers not found: processes cannot be joined over a network")
endif()

configure_file(cmake/version.hpp.in include/meshpost/version.hpp @ONLY)

add_library(meshpost
  src/array/accesses.cpp
  src/array/box_halo.cpp
  src/array/boxes.cpp
  src/array/build_box_plan.cpp
  src/array/build_plan.cpp
  src/array/buried.cpp
  src/array/coherence.cpp
  src/array/context.cpp
  src/array/distribution.cpp
  src/array/exchange.cpp
  src/array/grid.cpp
  src/array/grid_table.cpp
  src/array/moves.cpp
  src/array/needs.cpp
  src/array/part_owners.cpp
  src/array/plan.cpp
  src/array/stream_exchange.cpp
  src/base/caught.cpp
  src/base/config.cpp
  src/base/error.cpp
  src/base/events.cpp
  src/base/hash.cpp
  src/base/held.cpp
  src/base/hooks.cpp
  src/base/host_calls.cpp
  src/base/host_hooks.cpp
  src/base/fork.cpp
  src/base/prompt_threads.cpp
  src/base/thread.cpp
  src/compat/coaccel.cpp
  src/compat/coaccel_far.cpp
  src/compat/coaccel_network.cpp
  src/compat/coaccel_pipeline.cpp
  src/compat/coaccel_progress.cpp
  src/compat/cuda_on_cpu.cpp
  src/compat/dcuda_host.cpp
  src/compat/dcuda_options.cpp
  src/compat/dscuda.cpp
  src/compat/mp/buffer.cpp
  src/compat/mp/channel.cpp
  src/compat/mp/descriptors.cpp
  src/compat/mp/engine.cpp
  src/compat/mp/engine_thread.cpp
  src/compat/mp/guarded.cpp
  src/compat/mp/messages.cpp
  src/compat/mp/operations.cpp
  src/compat/mp/progress.cpp
  src/compat/mp/queues.cpp
  src/compat/mp/request.cpp
  src/compat/mp/session.cpp
  src/compat/mp/windows.cpp
  src/compat/mp/words.cpp
  src/compat/on_cpu/streams.cpp
  src/compat/shared_memory.cpp
  src/copy/batch.cpp
  src/copy/chain.cpp
  src/copy/check.cpp
  src/copy/copy.cpp
  src/copy/devices.cpp
  src/copy/job/copy_server.cpp
  src/copy/job/expose.cpp
  src/copy/job/access_epochs.cpp
  src/copy/job/message.cpp
  src/copy/job/other_memory.cpp
  src/copy/job/part_info.cpp
  src/copy/job/remote.cpp
  src/copy/job/remote_copy.cpp
  src/copy/job/rings.cpp
  src/copy/job/state.cpp
  src/copy/copy_stream.cpp
  src/copy/execute.cpp
  src/copy/explain.cpp
  src/copy/locate.cpp
  src/copy/order.cpp
  src/copy/overlap.cpp
  src/copy/request.cpp
  src/copy/route.cpp
  src/copy/search.cpp
  src/copy/staging.cpp
  src/copy/state.cpp
  src/copy/together.cpp
  src/copy/workers.cpp
  src/device/cpu/address_space.cpp
  src/device/cpu/core_slices.cpp
  src/device/cpu/launch_resources.cpp
  src/device/cpu/deadlock.cpp
  src/device/cpu/device.cpp
  src/device/cpu/fiber.cpp
  src/device/cpu/fiber_calls.cpp
  src/device/cpu/memory.cpp
  src/device/cpu/processor_time.cpp
  src/device/cpu/scheduler.cpp
  src/device/cpu/stream.cpp
  src/device/memory_map.cpp
  src/device/logical.cpp
  src/device/observed.cpp
  src/device/registry.cpp
  src/fabric/allocate.cpp
  src/fabric/calibrate.cpp
  src/fabric/discover.cpp
  src/fabric/host_copy.cpp
  src/fabric/host_ways.cpp
  src/fabric/machine.cpp
  src/fabric/machine_cache.cpp
  src/fabric/machine_json.cpp
  src/fabric/measure.cpp
  src/fabric/numa.cpp
  src/fabric/nvml.cpp
  src/fabric/place.cpp
  src/net/channel.cpp
  src/net/channel_losses.cpp
  src/net/engine.cpp
  src/net/faulty.cpp
  src/net/frame.cpp
  src/net/misuse.cpp
  src/net/rounds.cpp
  src/net/shuffled.cpp
  src/net/watched.cpp
  src/on_stream/calls.cpp
  src/on_stream/destination.cpp
  src/on_stream/endpoint.cpp
  src/on_stream/exchange.cpp
  src/on_stream/explain.cpp
  src/on_stream/far_sender.cpp
  src/on_stream/message_window.cpp
  src/on_stream/messages.cpp
  src/on_stream/stream_endpoint.cpp
  src/on_stream/stream_times.cpp
  src/on_stream/streams.cpp
  src/on_stream/supervision.cpp
  src/pipeline/crossing.cpp
  src/pipeline/distribution.cpp
  src/pipeline/failure.cpp
  src/pipeline/group.cpp
  src/pipeline/leg_executor.cpp
  src/pipeline/options.cpp
  src/pipeline/pipeline.cpp
  src/pipeline/relay.cpp
  src/pipeline/schedule.cpp
  src/pipeline/timeline.cpp
  src/pipeline/waits.cpp
  src/rma/communicators.cpp
  src/rma/world.cpp
  src/rma/world_state.cpp
  src/rma/checks/delivery.cpp
  src/rma/runs/diagnosing/counter_snapshot.cpp
  src/rma/runs/diagnosing/diagnosis.cpp
  src/rma/runs/diagnosing/failed_run_state.cpp
  src/rma/runs/diagnosing/failure.cpp
  src/rma/runs/ending/end.cpp
  src/rma/runs/ending/unconsumed.cpp
  src/rma/runs/ending/finish.cpp
  src/rma/runs/ending/timeline.cpp
  src/rma/runs/launching/agreement.cpp
  src/rma/runs/launching/device_locks.cpp
  src/rma/runs/launching/graph.cpp
  src/rma/runs/launching/graph_runs.cpp
  src/rma/runs/launching/run_part.cpp
  src/rma/runs/launching/prepare.cpp
  src/rma/runs/launching/queue.cpp
  src/rma/runs/launching/record.cpp
  src/rma/runs/launching/resources.cpp
  src/rma/runs/launching/run.cpp
  src/rma/runs/supervising/termination.cpp
  src/rma/runs/supervising/deadlock.cpp
  src/rma/runs/supervising/watch.cpp
  src/rma/via/choose.cpp
  src/rma/via/direct/access.cpp
  src/rma/via/lane/keeper.cpp
  src/rma/via/proxy/driver.cpp
  src/rma/via/proxy/inbound.cpp
  src/rma/via/proxy/command_queue.cpp
  src/rma/via/proxy/outbound.cpp
  src/rma/via/proxy/own_devices.cpp
  src/rma/via/proxy/wire_message.cpp
  src/rma/via/proxy/pinned_copies.cpp
  src/rma/via/proxy/proxy.cpp
  src/rma/via/proxy/remote_heap.cpp
  src/rma/via/proxy/quiesce.cpp
  src/rma/via/proxy/staging.cpp
  src/rma/via/proxy/undelivered.cpp
  src/rma/via/proxy/writes.cpp
  src/rma/windows/endpoint_counters.cpp
  src/rma/windows/far_memory.cpp
  src/rma/windows/freed_windows.cpp
  src/rma/windows/host_endpoint.cpp
  src/rma/windows/host_windows.cpp
  src/rma/windows/global_addresses.cpp
  src/rma/windows/user_windows.cpp
  src/rma/windows/windows.cpp
  src/trace/host_timeline.cpp
  src/trace/log.cpp
  src/trace/sync_report.cpp
  src/trace/event_text.cpp
  src/trace/timeline.cpp
  src/trace/timeline_writer.cpp
  src/trace/wait_report.cpp
  src/world/acceptor.cpp
  src/world/exchanges.cpp
  src/world/greeting.cpp
  src/world/heap.cpp
  src/world/imports.cpp
  src/world/job.cpp
  src/world/join_engine.cpp
  src/world/join.cpp
  src/world/layout.cpp
  src/world/line.cpp
  src/world/mappable.cpp
  src/world/memory_files.cpp
  src/world/node.cpp
  src/world/node_files.cpp
  src/world/offsets.cpp
  src/world/open_files.cpp
  src/world/out_of_band.cpp
  src/world/process_group.cpp
  src/world/processes.cpp
  src/world/processes_questions.cpp
  src/world/processes_thread.cpp
  src/world/progress_hang.cpp
  src/world/progress_thread.cpp
  src/world/question_server.cpp
  src/world/questions.cpp
  src/world/reach.cpp
  src/world/rendezvous.cpp
  src/world/secret.cpp
  src/world/gpu_sharing.cpp
  src/world/spaces.cpp
  src/world/group_tables.cpp
  src/world/tls.cpp
  src/world/mapping_trial.cpp
  src/world/wire.cpp)
add_library(meshpost::meshpost ALIAS meshpost)

# Most sources do not see CUDA. They need not be compiled again where a build without CUDA has them.
set(MESHPOST_COMPILED "" CACHE FILEPATH "libmeshpost.a of a build of the same sources without CUDA")
if(MESHPOST_CUDA AND MESHPOST_COMPILED)
  # As a whole, and first: so none of it comes from no_cuda.cpp.
  target_link_options(meshpost INTERFACE
    LINKER:--whole-archive $<BUILD_INTERFACE:$<TARGET_FILE:meshpost>> LINKER:--no-whole-archive)
  target_link_libraries(meshpost INTERFACE $<BUILD_INTERFACE:${MESHPOST_COMPILED}>)
endif()

if(MESHPOST_CUDA)
  target_sources(meshpost PRIVATE
    src/device/cuda/address_space.cpp
    src/device/cuda/check.cpp
    src/device/cuda/clock.cpp
    src/device/cuda/device.cpp
    src/device/cuda/launch_resources.cpp
    src/device/cuda/cooperative_launch.cpp
    src/device/cuda/gpu_launch.cpp
    src/device/cuda/graph.cpp
    src/device/cuda/memory.cpp
    src/device/cuda/mps.cpp
    src/device/cuda/ipc_memory.cpp
    src/device/cuda/stream.cpp
    src/device/cuda/channel_kernels.cpp
    src/device/cuda/exchange_kernels.cpp
    src/device/cuda/stream_kernels.cpp)
  meshpost_kernel_sources(meshpost src/device/cuda/channel_kernels.cpp src/device/cuda/clock.cpp
                          src/device/cuda/exchange_kernels.cpp
                          src/device/cuda/stream_kernels.cpp)
  target_link_libraries(meshpost PUBLIC CUDA::cudart_static)
else()
  target_sources(meshpost PRIVATE src/device/no_cuda.cpp)
  set_source_files_properties(src/device/no_cuda.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # see MESHPOST_COMPILED
endif()

if(MESHPOST_HAS_HWLOC)
  target_sources(meshpost PRIVATE src/fabric/hwloc.cpp)
  target_include_directories(meshpost SYSTEM PRIVATE ${MESHPOST_HWLOC_INCLUDE})
  target_link_libraries(meshpost PRIVATE ${MESHPOST_HWLOC})
else()
  target_sources(meshpost PRIVATE src/fabric/no_hwloc.cpp)
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")  # base/hash.cpp tests if the processor has AVX2
  target_sources(meshpost PRIVATE src/base/hash_avx2.cpp)
  set_source_files_properties(src/base/hash_avx2.cpp PROPERTIES COMPILE_OPTIONS -mavx2)  # so it is in no unity build
endif()

if(MESHPOST_HAS_OFI)
  target_sources(meshpost PRIVATE
    src/net/ofi/stale_files.cpp
    src/net/ofi/library.cpp
    src/net/ofi/losses.cpp
    src/net/ofi/make.cpp
    src/net/ofi/memory.cpp
    src/net/ofi/ofi.cpp
    src/net/ofi/probe.cpp
    src/net/ofi/provider.cpp
    src/net/ofi/receives.cpp
    src/net/ofi/texts.cpp
    src/net/ofi/transfers.cpp)
  target_include_directories(meshpost SYSTEM PRIVATE ${MESHPOST_OFI_INCLUDE})
else()
  target_sources(meshpost PRIVATE src/net/no_ofi.cpp)
endif()

target_compile_options(meshpost INTERFACE "$<$<COMPILE_LANGUAGE:CXX,CUDA>:-std=c++20>")  # see settings.cmake
target_include_directories(meshpost
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
         $<INSTALL_INTERFACE:include>
  PRIVATE src)
target_include_directories(meshpost SYSTEM PRIVATE ${MESHPOST_BOOST_INCLUDE} ${MESHPOST_XXHASH_INCLUDE})
target_link_libraries(meshpost
  PUBLIC Threads::Threads
  PRIVATE $<BUILD_INTERFACE:meshpost_build> fmt::fmt OpenSSL::SSL OpenSSL::Crypto ${MESHPOST_BOOST_CONTEXT} ${CMAKE_DL_LIBS}
          $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

if(MESHPOST_CUDA AND MESHPOST_COMPILED)
  get_target_property(compiled meshpost SOURCES)
  list(FILTER compiled EXCLUDE REGEX "device/cuda/|compat/")  # some interfaces include CUDA's header
  set_source_files_properties(${compiled} PROPERTIES HEADER_FILE_ONLY ON)
endif()
meshpost_unity(meshpost 24)

# The target for programs written for the dCUDA thesis's API. It has its include names, dcuda_host.h
# and dcuda_device.cu.h.
add_library(meshpost_dcuda INTERFACE)
add_library(meshpost::dcuda ALIAS meshpost_dcuda)
set_target_properties(meshpost_dcuda PROPERTIES EXPORT_NAME dcuda)
target_include_directories(meshpost_dcuda
  INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/meshpost/compat/dcuda>
            $<INSTALL_INTERFACE:include/meshpost/compat/dcuda>)
target_link_libraries(meshpost_dcuda INTERFACE meshpost)

# MPI programs link this, too: MPI as a World's launcher, and as its network.
set(MESHPOST_MPI AUTO CACHE STRING "MPI as launcher and network: AUTO (where it is found), ON, OFF")
set(MESHPOST_HAS_MPI OFF)
if(NOT MESHPOST_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)  # only the C interface is used
  find_package(MPI COMPONENTS CXX QUIET)
  if(MPI_CXX_FOUND)
    set(MESHPOST_HAS_MPI ON)
  elseif(MESHPOST_MPI STREQUAL "AUTO")
    message(STATUS "MPI not found: processes join by their launcher's variables alone")
  else()
    message(FATAL_ERROR "MESHPOST_MPI is ${MESHPOST_MPI}, and MPI was not found; install libopenmpi-dev or name one "
                        "with MPI_CXX_COMPILER")
  endif()
endif()
# Its errors say if there is MPI. (With a definition of its own, it is in no unity build.)
set_source_files_properties(src/compat/coaccel_far.cpp PROPERTIES
  COMPILE_DEFINITIONS MESHPOST_BUILT_WITH_MPI=$<BOOL:${MESHPOST_HAS_MPI}>)
if(MESHPOST_HAS_MPI)
  add_library(meshpost_mpi
    src/compat/mpi/coaccel_mpi.cpp
    src/compat/mpi/mp_init.cpp
    src/net/mpi/check.cpp
    src/net/mpi/frame.cpp
    src/net/mpi/make.cpp
    src/net/mpi/mpi.cpp
    src/net/mpi/progress.cpp
    src/rma/mpi/options.cpp
    src/world/mpi/addresses.cpp
    src/world/mpi/text_channel.cpp
    src/world/mpi/meet.cpp)
  if(MESHPOST_SANITIZE)  # no test runs it there
    set_target_properties(meshpost_mpi PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  add_library(meshpost::mpi ALIAS meshpost_mpi)
  set_target_properties(meshpost_mpi PROPERTIES EXPORT_NAME mpi)
  target_include_directories(meshpost_mpi PRIVATE src)
  target_link_libraries(meshpost_mpi PUBLIC meshpost MPI::MPI_CXX PRIVATE $<BUILD_INTERFACE:meshpost_build> fmt::fmt)
  meshpost_unity(meshpost_mpi 12)
endif()

# The target for programs of LibMP. It has its include names, mp.h and mp/device.cuh, and without
# CUDA those functions of cuda_runtime.h that such programs use. mp_init needs MPI.
add_library(meshpost_mp INTERFACE)
add_library(meshpost::mp ALIAS meshpost_mp)
set_target_properties(meshpost_mp PROPERTIES EXPORT_NAME mp)
set(mp_folders include/meshpost/compat)
if(NOT MESHPOST_CUDA)
  list(PREPEND mp_folders include/meshpost/compat/on_cpu)
endif()
foreach(folder IN LISTS mp_folders)
  target_include_directories(meshpost_mp
    INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${folder}> $<INSTALL_INTERFACE:${folder}>)
endforeach()
target_link_libraries(meshpost_mp INTERFACE meshpost)
