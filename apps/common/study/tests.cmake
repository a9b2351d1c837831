# Tests that the case studies share. meshpost_study_tests() first, with arguments for all tests.
macro(meshpost_study_tests app)
  set(study ${app})
  set(study_small --repetitions 1 --progress never ${ARGN})
  # Both versions must give the same bits.
  set(study_passes "results     equal to the bit")
  set(study_fails "DIFFERENT|NOT FINITE|unconsumed|terminate called|ended with status|was killed")
endmacro()

# A command that runs both versions.
function(add_study_job name)
  add_test(NAME ${study}.${name} COMMAND ${ARGN})
  set_tests_properties(${study}.${name} PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77
    PASS_REGULAR_EXPRESSION "${study_passes}" FAIL_REGULAR_EXPRESSION "${study_fails}")
endfunction()

function(add_study_test name)
  add_study_job(${name} ${study} ${study_small} ${ARGN})
endfunction()

# In two processes of a node, on two nodes, and with MPI as the other version's communication.
function(add_study_jobs)
  add_jobs(2 cpu:1 ${ARGN})
endfunction()

# The same for studies that need a square of devices: four.
function(add_study_squares)
  add_jobs(4 cpu:2 ${ARGN})
endfunction()

# `count` processes with a device each; or two of `devices`.
function(add_jobs count devices)
  set(program $<TARGET_FILE:${study}> ${study_small} ${ARGN} --devices)
  add_study_job(processes launch --no-label -n ${count} ${program} cpu:1)
  if(MESHPOST_HAS_OFI)
    add_study_job(nodes launch --no-label -n 2 --nodes 2 ${program} ${devices})
  endif()
  if(MESHPOST_HAS_MPI)
    add_study_job(mpi ${PROJECT_SOURCE_DIR}/tests/mpi/mpirun.sh 2 ${program} ${devices} --against mpi)
  endif()
endfunction()

# Arguments that are wrong, and the message.
function(add_study_refusal name message)
  add_test(NAME ${study}.refuses_${name} COMMAND ${study} --devices cpu:2 ${study_small} ${ARGN})
  set_tests_properties(${study}.refuses_${name} PROPERTIES TIMEOUT 30 PASS_REGULAR_EXPRESSION "${message}")
endfunction()
