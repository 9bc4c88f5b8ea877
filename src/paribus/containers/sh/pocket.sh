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
# By the clock: on a busy machine a sleep takes many times what it is asked for.
read -r now _ </proc/uptime
end=$((${now%.*} + 5))
while kill -0 "$fabric" 2>/dev/null && read -r now _ </proc/uptime && [ "${now%.*}" -lt "$end" ]; do
    sleep 0.01
done
kill -KILL "$fabric" 2>/dev/null
rm -rf "$here"
