# Ends what is left of a launch on a node to which the connection was lost, waits until its guards have
# left, and says which start of the system this is. What is sent before it sets nonce and scratch.
# shellcheck disable=SC2154,SC2013,SC2086
for tries in 1 2 3 4 5 6 7 8 9 10; do
    pids=
    for one in $(grep -sl "PARIBUS_LAUNCH=$nonce" /proc/[0-9]*/environ); do
        one=${one#/proc/}
        pids="$pids ${one%/environ}"
    done
    [ -n "$pids" ] || break
    kill -KILL $pids
    sleep 0.1
done 2>/dev/null
tries=0
for one in "$scratch/alive.$nonce".*; do
    while [ -e "$one" ] && [ "$tries" -lt 60 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
done
read -r boot </proc/sys/kernel/random/boot_id
echo "$nonce $boot"
exit
