#!/bin/sh
# usage: hosts.sh PROGRAM HOSTS FILTER: tests of PROGRAM, test_faults, with processes on several hosts, whose
# connections go by way of the test on another one.
set -eu
program=$1 hosts=$2 filter=$3
# shellcheck source=tests/support/hosts.sh
. "$(dirname "$0")/../../support/hosts.sh"
make_hosts "$hosts"
sent() { ip netns exec "$name-0" cat /sys/class/net/bridge/statistics/tx_bytes; }

MESHPOST_TEST_HOSTS=$name:$hosts ip netns exec "$name-0" "$program" --gtest_filter="$filter" &
background=$!
wait $background
[ "$(sent)" -gt 100000 ] || { echo "nothing went through the network"; exit 1; }
