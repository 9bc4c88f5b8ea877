#!/bin/sh
# podman_rank.sh PROGRAM...: carry out PROGRAM in a podman container on the machine's network. The
# PID namespace is there to end podman's helpers with the launcher's child, even when that is killed.
here=${0%/*}
give_up() {
    echo "paribus: $1" >&2
    exit 125
}
if [ "$1" != --inside ]; then
    while read -r key value; do
        [ "$key" = CapEff: ] && break
    done </proc/self/status
    user=
    [ $((0x$value & 0x200000)) -ne 0 ] || user='--user --map-root-user'
    # shellcheck disable=SC2086
    exec unshare $user --mount --pid --fork --kill-child --propagation private \
        -- /bin/sh "$0" --inside "$@"
fi
shift
mount -a -T "$here/rank.fstab" || give_up 'podman could not be given its own /proc and /run'
[ -r "$here/podman_ground.sh" ] || give_up "podman cannot work with TMPDIR in /run: set another"
. "$here/podman_ground.sh"
. "$here/podman_run.sh"
# Hydra speaks to its ranks through an inherited socket.
[ -z "$PMI_FD" ] || set -- --preserve-fds $((PMI_FD - 2)) "$@"
podman_run --network host --ipc host -v /sys:/sys -v "$work/mqueue:/dev/mqueue" -w "$PWD" --env TMPDIR="$TMPDIR" \
    --rootfs "$work/rootfs" "$@"
