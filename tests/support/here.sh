#!/bin/sh
# usage: here.sh HOST COMMAND...: runs the command here, as ssh does on a host: through a shell, with hardly any
# variables. For tests of meshpost-run --hosts on one host, and by anybody.
shift
exec env -i PATH="$PATH" HOME="${HOME:-/}" sh -c "$*"
