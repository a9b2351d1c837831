# Tests that the case studies share. meshpost_study_tests() first, with arguments for all tests.
macro(meshpost_study_tests app)
  set(study ${app})
  set(study_small --repetitions 1 --progress never ${ARGN})
endmacro()

# Both versions, which must give the same bits.
function(add_study_test name)
  add_test(NAME ${study}.${name} COMMAND ${study} ${study_small} ${ARGN})
  set_tests_properties(${study}.${name} PROPERTIES TIMEOUT 60
    PASS_REGULAR_EXPRESSION "results     equal to the bit" FAIL_REGULAR_EXPRESSION "DIFFERENT|NOT FINITE|unconsumed|terminate called|ended with status|was killed")
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
  add_test(NAME ${study}.processes COMMAND launch --no-label -n ${count} ${program} cpu:1)
  add_test(NAME ${study}.nodes COMMAND launch --no-label -n 2 --nodes 2 ${program} ${devices})
  set(jobs ${study}.processes ${study}.nodes)
  if(MESHPOST_HAS_MPI)
    add_test(NAME ${study}.mpi COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/mpirun.sh 2
      ${program} ${devices} --against mpi)
    list(APPEND jobs ${study}.mpi)
  endif()
  set_tests_properties(${jobs} PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77
    PASS_REGULAR_EXPRESSION "results     equal to the bit" FAIL_REGULAR_EXPRESSION "DIFFERENT|NOT FINITE|unconsumed|terminate called|ended with status|was killed")
endfunction()

# Arguments that are wrong, and the message.
function(add_study_refusal name message)
  add_test(NAME ${study}.refuses_${name} COMMAND ${study} --devices cpu:2 ${study_small} ${ARGN})
  set_tests_properties(${study}.refuses_${name} PROPERTIES TIMEOUT 30 PASS_REGULAR_EXPRESSION "${message}")
endfunction()
