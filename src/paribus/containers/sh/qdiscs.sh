# qdiscs.sh: print which queueing disciplines this kernel has: tbf, netem.
while read -r key value; do
    [ "$key" = CapEff: ] && break
done </proc/self/status
user=
[ $((0x$value & 0x201000)) -eq $((0x201000)) ] || user='--user --map-root-user'
# shellcheck disable=SC2086
unshare $user --net sh -c '
    tc qdisc add dev lo root tbf rate 1mbit burst 4000 limit 8000 && echo tbf && tc qdisc del dev lo root
    tc qdisc add dev lo root netem delay 1ms && echo netem
    :
' 2>/dev/null
