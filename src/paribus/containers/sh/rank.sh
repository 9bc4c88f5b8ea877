# rank.sh PROGRAM...: become PROGRAM in mount and UTS namespaces of its own; the pid stays.
while read -r key value; do
    [ "$key" = CapEff: ] && break
done </proc/self/status
user=
[ $((0x$value & 0x200000)) -ne 0 ] || user='--user --map-root-user'
# shellcheck disable=SC2086
exec unshare $user --mount --uts --propagation private -- "$@"
