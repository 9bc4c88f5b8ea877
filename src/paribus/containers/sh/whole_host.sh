# whole_host.sh PROGRAM...: become PROGRAM in a container that stands for this host, on its network.
while read -r key value; do
    [ "$key" = CapEff: ] && break
done </proc/self/status
user=
if [ $((0x$value & 0x200000)) -eq 0 ]; then
    user='--user --map-root-user' # mount(8) asks for root
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# shellcheck disable=SC2086,SC2016
exec unshare $user --mount --uts --ipc --pid --fork --kill-child --propagation private -- \
    /bin/sh -c '
        mount -t proc host-proc /proc && mount -t tmpfs -o mode=1777 host-shm /dev/shm || {
            echo "paribus: the container could not mount its own /proc and /dev/shm" >&2
            exit 125
        }
        # Hosts that share files share the names made of process numbers.
        { echo $((100 * (PARIBUS_NODE + 1) % 30000)) >/proc/sys/kernel/ns_last_pid; } 2>/dev/null
        exec "$@"' sh "$@"
