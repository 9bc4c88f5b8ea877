#!/bin/sh
# start.sh COMMAND...: run COMMAND inside a fabric that lives exactly as long as it.
here=${0%/*}

# A user namespace only where the capabilities are missing: CAP_NET_ADMIN (12), CAP_SYS_ADMIN (21).
while read -r key value; do
    [ "$key" = CapEff: ] && break
done </proc/self/status
user=
if [ $((0x$value & 0x201000)) -ne $((0x201000)) ]; then
    user='--user --map-root-user'
    # Open MPI believes that this is root; it is the user who asked.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# The fabric dies with whoever started it, where setpriv knows how (util-linux 2.33).
tie=
setpriv --pdeathsig KILL true 2>/dev/null && tie='setpriv --pdeathsig KILL'

# A new network namespace starts from the kernel's TCP settings, not from this machine's.
tcp=$(grep -s . /proc/sys/net/ipv4/tcp_* /proc/sys/net/core/[rw]mem_*)

# shellcheck disable=SC2086
exec $tie unshare $user --net --uts --ipc --mount --pid --fork --kill-child --propagation private \
    -- /bin/sh "$here/fabric.sh" "$here" "$tcp" "$@"
