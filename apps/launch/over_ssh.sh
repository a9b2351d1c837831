#!/usr/bin/env bash
# usage: over_ssh.sh [-l FOLDER] [-s COMMAND] HOST[:COUNT],... PROGRAM [ARGUMENT...]
# Starts PROGRAM by ssh (or COMMAND) in this folder on each HOST, COUNT processes (1) each. An IPv6 address is [::1].
# Output of process k goes to FOLDER/process-k.log (logs/) and here. MESHPOST_... variables of this shell are set there.
# MESHPOST_RENDEZVOUS is by default a free port of the first host. A process that fails ends the others, as Ctrl-C does.
# shellcheck disable=SC2317 # functions run there
set -feuo pipefail
die() { echo "${0##*/}: $*" >&2 && exit 2; }
logs=logs ssh=(ssh -T -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15) hosts=()
[[ ! ${MESHPOST_LAUNCHER:-} ]] || unset MESHPOST_{RENDEZVOUS,LISTENER,SECRET,NODE,LAUNCHER} # of an outer job
while getopts l:s: option; do
  case $option in l) logs=$OPTARG ;; s) read -ra ssh <<<"$OPTARG" ;; *) sed -n '2,5s/^# //p' "$0" >&2 && exit 2 ;; esac
done; shift $((OPTIND - 1))
[[ $# -ge 2 && $1 == *[!,]* ]] || die "give hosts and a program, as in: ${0##*/} node-a,node-b:2 ./ring"
for entry in ${1//,/ }; do
  [[ $entry =~ ^(([^]@:[-][^]@:[]*@)?\[[^]-]*:[^]]*\]|[^]:[-][^]:[]*)(:([1-9][0-9]*))?$ ]] ||
    die "'$entry' is no host; write hosts as node-a,node-b:2,[::1]:2"
  for ((i = 0; i < ${BASH_REMATCH[4]:-1}; ++i)); do hosts+=("${BASH_REMATCH[1]}"); done
done
free_port() { # on its host: no socket there has it; the files have hexadecimal numbers
  until port=$((20000 + RANDOM % 10000)) && ! grep -Eqs ": [0-9A-F]+:$(printf %04X "$port") " /proc/net/tcp{,6}; do :; done
  echo "$port"
}
# Runs on the process's host. Lines of standard input are signals for the program's process group;
# the end of input kills it.
there() { # PROGRAM...
  setsid "$@" </dev/null &
  local program=$! status=0
  { while read -r signal; do kill "-$signal" -- "-$program"; done; kill -KILL "$program" "-$program"; } <&0 &>/dev/null &
  wait "$program" 2>/dev/null || status=$? # bash would print the signal that killed it
  kill -KILL -- "-$program" $! 2>/dev/null; exit "$status"
}
{ mkdir -p "$logs" && : >"$logs/process-0.log"; } || die "can't write to the folder '$logs'; name another with -l"
secret=$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n') # sent by standard input: others can read command lines
rendezvous=${MESHPOST_RENDEZVOUS:-${hosts[0]#*@}:$({ declare -f free_port && echo free_port; } |
  "${ssh[@]}" "${hosts[0]//[\[\]]/}" bash | tail -n 1)}
pipes=$(mktemp -d) to=() left=${#hosts[@]} result=0 next=TERM due=''
end() { for line in "${to[@]}"; do echo "$next" >&"$line" || true; done 2>/dev/null; next=KILL due=$((SECONDS + 3)); }
trap 'result=$((result ? result : 130)) && end' HUP INT QUIT TERM
(cd "$pipes" && mkfifo ended "${!hosts[@]}") && exec {ended}<>"$pipes/ended"
for k in "${!hosts[@]}"; do
  { set +e && trap '' HUP INT QUIT
    "${ssh[@]}" "${hosts[k]//[\[\]]/}" bash <"$pipes/$k" 2>&1 | tee "$logs/process-$k.log" | sed -u "s/^/[$k] /"
    echo "$k ${PIPESTATUS[0]}" >&"$ended"
  } &
done; trap '' PIPE
for k in "${!hosts[@]}"; do # after all starts: no other process may hold these open when this one is killed
  exec {line}>"$pipes/$k" && to+=("$line")
  { for name in $(compgen -e MESHPOST_); do printf 'export %s=%q\n' "$name" "${!name}"; done
    printf 'export MESHPOST_%s\n' "SECRET=$secret" "RENDEZVOUS=$rendezvous" "PROCESSES=${#hosts[@]}" "PROCESS=$k"
    printf 'cd %q || exit\n%s\nthere %s\n' "$PWD" "$(declare -f there)" "$(printf ' %q' "${@:2}")"; } >&"$line" || true
done 2>/dev/null; rm -r "$pipes" || rm -rf "$pipes" || true # a signal of the terminal may have ended the first
while ((left)); do
  [[ ! $due ]] || ((SECONDS < due)) || end
  read -r -t 0.2 k status <&"$ended" || continue
  ((--left, status && !result)) || continue
  result=$status due=$((SECONDS + 3))
  echo "${0##*/}: process $k on ${hosts[k]} ended with status $status, see $logs/process-$k.log; ending the others" >&2
done
exit "$result"
