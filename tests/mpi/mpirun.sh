#!/bin/sh
# usage: mpirun.sh PROCESSES PROGRAM [ARGUMENTS]: runs it under mpirun, also with more processes
# than cores and as root. Exits with 77 if there is no mpirun.
set -eu
if ! command -v mpirun >/dev/null; then
  echo "skipped: there is no mpirun (package openmpi-bin)"
  exit 77
fi
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Containers often forbid processes to read each other's memory, so this is switched off.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl_base_warn_component_unused=0
# Open MPI makes a directory for all its programs of a user, and fails if two make it at once.
directory=$(mktemp -d)
(tail --pid=$$ -f /dev/null && rm -rf "$directory") </dev/null >/dev/null 2>&1 &
export OMPI_MCA_orte_tmpdir_base="$directory" PRTE_MCA_prte_tmpdir_base="$directory"
processes=$1
shift
exec mpirun -n "$processes" "$@"
