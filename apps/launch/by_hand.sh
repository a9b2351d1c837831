#!/bin/sh
# Starts one process of PROGRAM at each PLACE, as meshpost-run does: by_hand.sh HOST:PORT PROGRAM PLACE...
# A place is what takes a command: "ssh node-b", or "sh -c" for this host. Process 0 is at the first,
# and listens at HOST:PORT.
set -eu
rendezvous=$1 program=$2
shift 2
secret=$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n')
process=0 started='' status=0
for place in "$@"; do
  # The secret goes by standard input: command lines can be read by others.
  # shellcheck disable=SC2086
  echo "$secret" | $place "read -r MESHPOST_SECRET
    export MESHPOST_SECRET MESHPOST_PROCESS=$process MESHPOST_PROCESSES=$#
    export MESHPOST_RENDEZVOUS=$rendezvous
    exec $program" &
  started="$started $!" process=$((process + 1))
done
for one in $started; do wait "$one" || status=$?; done
exit "$status"
