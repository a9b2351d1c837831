#!/bin/sh
# usage: hosts.sh PROGRAM LISTING OVER_SSH HOSTS: jobs between several hosts, with two processes on
# each, started by OVER_SSH. PROGRAM is test_jobs, LISTING a dCUDA program for CPU devices; none:
# "".
set -eu
program=$1 listing=$2 over_ssh=$3 hosts=$4
# shellcheck source=tests/support/hosts.sh
. "$(dirname "$0")/../../support/hosts.sh"
make_hosts "$hosts"

processes=$((hosts * 2))
export MESHPOST_RANKS=2 MESHPOST_NET=ofi:tcp MESHPOST_RENDEZVOUS=10.79.0.1:7000
list=$(for host in $(seq 1 "$hosts"); do printf '%s-%s:2,' "$name" "$host"; done)

start() { # WORDS...: output goes to $work/out, that of process k also to $work/process-k.log
  timeout 60 "$over_ssh" -s "ip netns exec" -l "$work" "$list" "$@" >"$work/out" 2>&1 &
  background=$!
}
finish() { # WHAT: all must have ended well
  if ! wait "$background"; then
    echo "failed: $1"
    cat "$work/out"
    exit 1
  fi
}
launch() { start "$@" && finish "$*"; }
role() { launch env "MESHPOST_TEST_ROLE=$1" "$program"; }
sent() { ip netns exec "$name-1" cat /sys/class/net/eth0/statistics/tx_bytes; }
each() { seq 0 $((processes - 1)); }

for role in ring everything groups; do
  before=$(sent)
  role $role
  [ $(($(sent) - before)) -gt 5000 ] || { echo "$role: nothing went through the network"; exit 1; }
  echo "$role: $(($(sent) - before)) bytes left host 1"
done

# A dCUDA program, with a log of each process.
if [ -n "$listing" ]; then
  before=$(sent)
  launch "$listing"
  [ $(($(sent) - before)) -gt 5000 ] || { echo "the listing: nothing went through the network"; exit 1; }
  for process in $(each); do [ -f "$work/process-$process.log" ]; done
  grep -q "^Sum = " "$work/process-0.log" || { echo "the listing: process 0 has another log"; exit 1; }
  echo "a dCUDA listing, process 0: $(tail -n 1 "$work/process-0.log")"
fi

# A slow link: 20 Mbit/s, in bursts of 10 kB.
if tc -n "$name-0" qdisc add dev port2 root tbf rate 20mbit burst 10kb latency 50ms 2>/dev/null; then
  role everything
  tc -n "$name-0" qdisc del dev port2 root
  echo "everything, over a slow link"
fi

# The link is cut: after the deadline each side names the other's processes.
export MESHPOST_PEER_DEADLINE=3
rm -f "$work"/*.log
start env MESHPOST_TEST_ROLE=rounds "$program"
for process in $(each); do
  tries=0
  until grep -qs begins "$work/process-$process.log"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { echo "rounds: process $process did not begin"; exit 1; }
    sleep 0.1
  done
done
ip -n "$name-0" link set port2 down
finish rounds
for process in $(each); do
  grep -qE 'peer lost|deadline' "$work/process-$process.log" ||
    { echo "rounds: process $process does not say why"; cat "$work/out"; exit 1; }
done
echo "a cable was pulled: $(grep -h -o 'no sign of life.*reach\|no rank got on[^;]*' "$work/process-0.log" | head -1)"
