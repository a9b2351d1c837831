#!/bin/sh
# usage: hosts.sh PROGRAM HOSTS: jobs between several "hosts", network namespaces joined by a bridge.
# PROGRAM is test_jobs. Exits with 77 where this machine does not let us make them.
set -eu
program=$1 hosts=$2
name=mp$$
work=$(mktemp -d)

skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "only root makes network namespaces"
command -v ip >/dev/null || skip "there is no ip (package iproute2)"
ip netns add "$name-bridge" 2>/dev/null || skip "network namespaces are not allowed here"
clean_up() {
  cat "$work"/pid.* 2>/dev/null | xargs -r kill -9 2>/dev/null || true
  for host in $(seq 0 "$hosts"); do ip netns del "$name-$host" 2>/dev/null || true; done
  ip netns del "$name-bridge" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

ip -n "$name-bridge" link add bridge type bridge
ip -n "$name-bridge" link set bridge up
for host in $(seq 1 "$hosts"); do
  ip netns add "$name-$host"
  ip link add "eth0" netns "$name-$host" type veth peer name "port$host" netns "$name-bridge"
  ip -n "$name-bridge" link set "port$host" master bridge up
  ip -n "$name-$host" addr add "10.79.0.$host/24" dev eth0
  ip -n "$name-$host" link set eth0 up
  ip -n "$name-$host" link set lo up
done

openssl rand -hex 32 >"$work/secret" 2>/dev/null || head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/secret"
chmod 600 "$work/secret"
processes=$((hosts * 2))
export MESHPOST_PROCESSES=$processes MESHPOST_SECRET_FILE="$work/secret" MESHPOST_RANKS=2
export MESHPOST_NET=ofi:tcp

start() { # ROLE PORT: two processes a host
  for process in $(seq 0 $((processes - 1))); do
    host=$((process / 2 + 1))
    MESHPOST_TEST_ROLE=$1 MESHPOST_RENDEZVOUS=10.79.0.1:$2 MESHPOST_PROCESS=$process \
      ip netns exec "$name-$host" timeout 60 "$program" >"$work/out.$process" 2>&1 &
    echo $! >"$work/pid.$process"
  done
}
finish() { # ROLE: all must end well
  for process in $(seq 0 $((processes - 1))); do
    if ! wait "$(cat "$work/pid.$process")"; then
      echo "$1: process $process failed"
      cat "$work/out.$process"
      exit 1
    fi
  done
  rm -f "$work"/pid.*
}
sent() { ip netns exec "$name-1" cat /sys/class/net/eth0/statistics/tx_bytes; }

for role in ring everything groups; do
  before=$(sent)
  start $role 7001
  finish $role
  [ $(($(sent) - before)) -gt 5000 ] || { echo "$role: nothing went through the network"; exit 1; }
  echo "$role: $(($(sent) - before)) bytes left host 1"
done

# A slow link: 20 Mbit/s, in bursts of 10 kB.
if tc -n "$name-bridge" qdisc add dev port2 root tbf rate 20mbit burst 10kb latency 50ms 2>/dev/null; then
  start everything 7002
  finish everything
  tc -n "$name-bridge" qdisc del dev port2 root
  echo "everything, over a slow link"
fi

# The cable is pulled: after the deadline each side names the other's processes.
export MESHPOST_DEADLINE=3
start rounds 7003
for process in $(seq 0 $((processes - 1))); do
  tries=0
  until grep -q begins "$work/out.$process"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { echo "rounds: process $process did not begin"; exit 1; }
    sleep 0.1
  done
done
ip -n "$name-bridge" link set port2 down
finish rounds
for process in $(seq 0 $((processes - 1))); do
  grep -qE 'peer lost|deadline' "$work/out.$process" ||
    { echo "rounds: process $process does not say why"; cat "$work/out.$process"; exit 1; }
done
echo "a cable was pulled: $(grep -h -o 'no sign of life.*reach\|no rank got on[^;]*' "$work/out.0" | head -1)"
