# shellcheck shell=sh
# To be sourced by tests: "hosts" that are network namespaces, joined by a bridge. Host k is the
# namespace $name-k and has the address 10.79.0.k; $name-0, where the bridge is, has 10.79.0.254.
# The test exits with 77 if this machine does not allow them.
name=mp$$
work=$(mktemp -d)
hosts_made=0
background='' # processes that the test has started and not waited for

skip() {
  echo "skipped: $1"
  exit 77
}

clean_up() {
  [ -z "$background" ] || kill -9 "$background" 2>/dev/null || true
  for host in $(seq 0 "$hosts_made"); do
    ip netns pids "$name-$host" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "$name-$host" 2>/dev/null || true
  done
  rm -rf "$work"
}

make_hosts() { # HOW MANY
  [ "$(id -u)" = 0 ] || skip "only root makes network namespaces"
  command -v ip >/dev/null || skip "there is no ip (package iproute2)"
  trap clean_up EXIT
  hosts_made=$1
  ip netns add "$name-0" 2>/dev/null || skip "network namespaces are not allowed here"
  ip -n "$name-0" link add bridge type bridge
  ip -n "$name-0" link set bridge up
  ip -n "$name-0" link set lo up
  ip -n "$name-0" addr add 10.79.0.254/24 dev bridge
  for host in $(seq 1 "$1"); do
    ip netns add "$name-$host"
    ip link add "eth0" netns "$name-$host" type veth peer name "port$host" netns "$name-0"
    ip -n "$name-0" link set "port$host" master bridge up
    ip -n "$name-$host" addr add "10.79.0.$host/24" dev eth0
    ip -n "$name-$host" link set eth0 up
    ip -n "$name-$host" link set lo up
  done
}
