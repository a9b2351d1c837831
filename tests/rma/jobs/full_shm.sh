#!/bin/sh
# usage: full_shm.sh PROGRAM LAUNCHER: if /dev/shm is full, jobs run as usual, because their memory
# is not there. An engine that needs room there reports an error. PROGRAM is an example.
set -eu
program=$1 launcher=$2
if [ "${3:-}" != inside ]; then
  [ "$(id -u)" = 0 ] || { echo "skipped: only root can mount a small /dev/shm"; exit 77; }
  unshare -m true 2>/dev/null || { echo "skipped: mount namespaces are not allowed here"; exit 77; }
  exec unshare -m "$0" "$program" "$launcher" inside
fi
mount -t tmpfs -o size=4k none /dev/shm 2>/dev/null || { echo "skipped: nothing can be mounted here"; exit 77; }
head -c 100000 /dev/zero >/dev/shm/full 2>/dev/null || true
if sh -c 'echo x >/dev/shm/more' 2>/dev/null; then echo "/dev/shm is not full"; exit 1; fi

"$launcher" -n 2 "$program"
"$launcher" -n 2 --nodes 2 "$program"
said=$(MESHPOST_NET=ofi:shm "$launcher" -n 2 --nodes 2 --timeout 50 "$program" 2>&1) && { echo "it fits"; exit 1; }
echo "$said"
echo "$said" | grep -q "network engine ofi:shm: .*/dev/shm has no room" || exit 1
