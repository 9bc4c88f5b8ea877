# bridged.sh HOSTS PROGRAM...: run PROGRAM in a network of its own, which a bridge of this pocket
# host, one of HOSTS, joins to it. The hosts route to the bridges of each other. Programs of one launch
# share the network of a host, which a process of none of them holds: each is ended with all that it
# started. The last one removes it, or the next launch does.
# shellcheck disable=SC2016
hosts=$1 number=$((PARIBUS_NODE + 1)) here=/run/paribus-bridged
shift
others() { # others WORDS: the words of `ip -batch` for the route to each other host
    other=1
    while [ "$other" -le "$hosts" ]; do
        [ "$other" = "$number" ] || echo "route $1 10.78.$other.0/24 via 10.77.0.$other"
        other=$((other + 1))
    done
}
remove() { # A link goes with its container's namespace, but only some time after that.
    [ ! -s "$here/holder" ] || { read -r holder <"$here/holder" && kill -KILL "$holder"; } 2>/dev/null
    rm -f "$here/holder" "$here/ready" "$here/users"
    ip link del paribus1 2>/dev/null
    ip link del paribus0 2>/dev/null
    others del | ip -force -batch - 2>/dev/null
}
give_up() {
    echo "paribus: $1" >&2
    remove
    exit 125
}
# Of the first time: a launch that was killed may have left it on.
forward=/proc/sys/net/ipv4/ip_forward saved=$here/forward

make() {
    remove
    [ -r "$saved" ] || cat "$forward" >"$saved"
    {
        echo 'link add paribus0 type bridge'
        echo "addr add 10.78.$number.254/24 dev paribus0"
        echo 'link set paribus0 up'
        others add
    } | ip -batch - || give_up 'the bridge of this host could not be made'
    echo 1 >"$forward" || give_up 'this host may not forward packets'
    # The names of hosts are those of their containers.
    {
        echo '127.0.0.1 localhost'
        other=1
        while [ "$other" -le "$hosts" ]; do
            echo "10.78.$other.1 h$other"
            other=$((other + 1))
        done
    } >"$here/hosts"
    mkfifo "$here/ready" || give_up 'the scratch directory takes no fifo'
    # A new network namespace starts with the settings of the kernel.
    settings=$(grep -s . /proc/sys/net/ipv4/tcp_* /proc/sys/net/core/[rw]mem_*)
    unmarked=$(env | sed -n 's/^\(PARIBUS_GUARD_[0-9]*\)=.*/-u \1/p')
    # shellcheck disable=SC2086
    env $unmarked unshare --net --mount --propagation private -- /bin/sh -c '
        here=$1 number=$2 settings=$3
        failed() { echo failed >"$here/ready"; exit 125; }
        { echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; } 2>/dev/null
        mount -t sysfs bridged-sys /sys && mount --bind "$here/hosts" /etc/hosts || failed
        ip -batch - <<END || failed
link set lo up
link add eth0 type veth peer name paribus1 netns /proc/self/fd/9
addr add 10.78.$number.1/24 dev eth0
link set eth0 up
route add default via 10.78.$number.254
END
        nsenter --net=/proc/self/fd/9 ip link set paribus1 master paribus0 up || failed
        newline="
"
        inner=$newline$(grep -s . /proc/sys/net/ipv4/tcp_* /proc/sys/net/core/[rw]mem_*)$newline
        IFS=$newline
        for line in $settings; do
            case $inner in *"$newline$line$newline"*) continue ;; esac
            case $line in *tcp_fastopen_key:*) continue ;; esac
            [ ! -w "${line%%:*}" ] || echo "${line#*:}" >"${line%%:*}"
        done
        unset IFS
        # A port forwards only after the kernel has acted on its carrier (see fabric.sh).
        until nsenter --net=/proc/self/fd/9 ip -oneline link show dev paribus1 | grep -q " state UP "; do :; done
        link=/sys/class/net/eth0
        until read -r _ <$link/carrier && read -r state <$link/operstate && [ "$state" = up ]; do :; done
        echo "$$" >"$here/ready"
        exec sleep 2147483647 9<&- 2>/dev/null' bridged "$here" "$number" "$settings" \
        9</proc/self/ns/net 8<&- </dev/null >/dev/null &
    read -r holder <"$here/ready"
    [ "$holder" != failed ] || give_up 'the container could not be joined to the bridge of this host'
    echo "$holder" >"$here/holder"
}

mkdir -p "$here" || exit 125
exec 8>"$here/lock"
flock 8 || exit 125
launch='' users=0
[ ! -s "$here/users" ] || read -r launch users <"$here/users"
[ "$launch" = "$PARIBUS_LAUNCH" ] || users=0
[ "$users" -gt 0 ] || make
echo "$PARIBUS_LAUNCH $((users + 1))" >"$here/users"
read -r holder <"$here/holder"
flock -u 8

# What ends the launch reaches the program by itself.
trap : HUP INT TERM
nsenter -t "$holder" -n -m -- /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@" 8<&- </dev/null
code=$?
flock 8
read -r launch users <"$here/users"
[ "$launch" = "$PARIBUS_LAUNCH" ] || exit "$code"
echo "$launch $((users - 1))" >"$here/users"
[ "$users" -le 1 ] || exit "$code"
remove
cat "$saved" >"$forward"
exit "$code"
