#!/bin/sh
# usage: starts.sh WAY PROGRAM RING: a job of three processes, on three hosts, and how it ends when one is killed.
# WAY is what starts it: over_ssh, by_hand, mpirun (Open MPI's), mpiexec (MPICH's) or srun. PROGRAM is test_jobs,
# RING the example.
set -eu
way=$1 program=$2 ring=$3
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/hosts.sh
. "$here/support/hosts.sh"
(umask 077 && od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' >"$work/secret")
export MESHPOST_RANKS=2 MESHPOST_NET=ofi:tcp MESHPOST_SECRET_FILE="$work/secret"
passed() { grep "6 ranks on 3 devices passed" "$work/out" || { cat "$work/out"; exit 1; }; }
case $way in
  mpirun) mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "there is no mpirun of Open MPI's" ;;
  mpiexec) command -v mpiexec.hydra >/dev/null || skip "there is no mpiexec.hydra (package mpich)" ;;
  srun) # on nodes of a real Slurm: a test can't simulate them
    trap 'rm -rf "$work"' EXIT
    command -v srun >/dev/null || skip "there is no srun (package slurm-client)"
    [ "$(sinfo -h -t idle -o %D 2>/dev/null | head -1)" -ge 3 ] 2>/dev/null || skip "Slurm has no three idle nodes"
    MESHPOST_SECRET=$(cat "$work/secret")
    export MESHPOST_SECRET
    # shellcheck disable=SC2016 # its processes expand it
    srun -N3 -n3 sh -c 'MESHPOST_RENDEZVOUS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1):$0 exec "$1"' \
      $((20000 + $$ % 10000)) "$ring" >"$work/out" 2>&1 || true
    passed
    exit 0
    ;;
esac
make_hosts 3

# The replacement of ssh: HOST COMMAND...; launchers distinguish hosts by their names.
cat >"$work/reach" <<'END'
#!/bin/sh
[ "$1" != -x ] || shift # MPICH's mpiexec may give it
host=$1
shift
exec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
END
chmod +x "$work/reach"
list=$name-1,$name-2,$name-3
meet_at() { export MESHPOST_RENDEZVOUS="10.79.0.1:$1"; } # each job has an address of its own
started() { # PROGRAM...: ends as the job does
  case $way in
    over_ssh) "$here/../apps/launch/over_ssh.sh" -s "$work/reach" -l "$work/logs" "$list" "$@" ;;
    by_hand)
      all='' worst=0
      for k in 0 1 2; do
        MESHPOST_PROCESSES=3 MESHPOST_PROCESS=$k ip netns exec "$name-$((k + 1))" "$@" &
        all="$all $!"
      done
      for one in $all; do wait "$one" || worst=$?; done
      return $worst
      ;;
    mpirun) OMPI_MCA_plm_rsh_agent=$work/reach ip netns exec "$name-0" "$here/mpi/mpirun.sh" 3 --host "$list" \
      -x MESHPOST_RANKS -x MESHPOST_NET -x MESHPOST_SECRET_FILE -x MESHPOST_RENDEZVOUS "$@" ;;
    mpiexec) ip netns exec "$name-0" mpiexec.hydra -iface bridge -launcher rsh -launcher-exec "$work/reach" \
      -hosts "$list" -n 3 "$@" ;;
  esac
}

meet_at 7000
started "$ring" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
passed

# One process is killed: the job ends, a message names it, and nothing remains.
meet_at 7001
started env MESHPOST_TEST_ROLE=rounds "$program" >"$work/out" 2>&1 &
background=$!
tries=0
until [ "$(grep -c begins "$work/out")" = 3 ]; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || { echo "rounds: they did not begin"; cat "$work/out"; exit 1; }
  sleep 0.1
done
victim=$(ip netns pids "$name-2" | while read -r pid; do
  [ "$(readlink "/proc/$pid/exe")" != "$program" ] || echo "$pid"
done)
kill -9 "$victim"
status=0
wait "$background" || status=$?
[ $status != 0 ] || { echo "a job whose process was killed ended with status 0"; exit 1; }
says() { grep -m 1 -E "$1" "$work/out" || { echo "missing: $1"; cat "$work/out"; exit 1; }; }
says "process 1 \(.*pid $victim\) is gone|rank 1 with PID $victim .*signal 9|PID $victim RUNNING AT $name-2"
[ "$way" != over_ssh ] || says "process 1 on $name-2 ended with status 137"
for host in 1 2 3; do
  left=$(ip netns pids "$name-$host")
  [ -z "$left" ] || { echo "on host $host remains: $left"; exit 1; }
done
[ "$way" = by_hand ] || exit 0

# Errors of users.
export MESHPOST_START_DEADLINE=1
fails() { if started "$@" >"$work/out" 2>&1; then echo "it ended with status 0" && exit 1; fi; }
export MESHPOST_RENDEZVOUS=10.79.0.9:7002
fails "$ring"
says "meet at 10.79.0.9:7002: process 0 can't listen there: .*; name an address of the host that process 0 runs on"
says "meet at 10.79.0.9:7002: process 0 was not there within 1 s: "
meet_at 7003
export MESHPOST_START_DEADLINE=5
tr 0-9 1-90 <"$work/secret" >"$work/other" && chmod 600 "$work/other"
fails sh -c "[ \$MESHPOST_PROCESS != 2 ] || export MESHPOST_SECRET_FILE=$work/other; exec $ring"
says "the secret is another one than process 0's; give all processes the same"
says "2 of 3 processes came within 5 s; missing: process 2; refused 3 calls with another secret, the last of a caller from 10.79.0.3"
