#!/bin/sh
# pocket.sh COUNT [PROGRAM...]: the controller of a pocket cluster of COUNT hosts, which PROGRAM joins
# where the kernel cannot. It lives until its standard input ends, as when Paribus is killed; then it
# ends the fabric and removes the directory. Killed itself, it takes the fabric with it: the fabric
# waits for the end of a pipe that only this process writes to.
here=${0%/*}
mkfifo "$here/alive" "$here/go" || exit 125
exec 5<>"$here/alive"
exec 4<"$here/alive"
/bin/sh "$here/start.sh" /bin/sh "$here/joined.sh" "$here" "$@" </dev/null 5>&- &
fabric=$!
exec >&-
while read -r _; do :; done
exec 4<&- 5>&-
tries=500
while kill -0 "$fabric" 2>/dev/null && [ $((tries = tries - 1)) -gt 0 ]; do sleep 0.01; done
kill -KILL "$fabric" 2>/dev/null
rm -rf "$here"
