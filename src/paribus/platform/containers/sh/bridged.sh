# bridged.sh HOSTS PROGRAM...: carry out PROGRAM in a network of its own, which a bridge of this pocket
# host, one of HOSTS, joins to it. The hosts route to the bridges of each other. What is made is removed
# at the end, or by the next one.
hosts=$1 number=$((PARIBUS_NODE + 1)) bridge=paribus0
shift
others() { # others WORDS: the words of `ip -batch` for the route to each other host
    other=1
    while [ "$other" -le "$hosts" ]; do
        [ "$other" = "$number" ] || echo "route $1 10.78.$other.0/24 via 10.77.0.$other"
        other=$((other + 1))
    done
}
remove() { # A link goes with its container's namespace, but only some time after that.
    ip link del paribus1 2>/dev/null
    ip link del "$bridge" 2>/dev/null
    others del | ip -force -batch - 2>/dev/null
}
give_up() {
    echo "paribus: $1" >&2
    remove
    exit 125
}
remove
# Of the first time: a launch that was killed may have left it on.
forward=/proc/sys/net/ipv4/ip_forward saved=/run/paribus-forward
[ -r "$saved" ] || cat "$forward" >"$saved"
{
    echo "link add $bridge type bridge"
    echo "addr add 10.78.$number.254/24 dev $bridge"
    echo "link set $bridge up"
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
} >"${TMPDIR:=/tmp}/bridged-hosts"
# A new network namespace starts with the settings of the kernel.
settings=$(grep -s . /proc/sys/net/ipv4/tcp_* /proc/sys/net/core/[rw]mem_*)
trap 'kill -TERM $! 2>/dev/null' HUP INT TERM
# shellcheck disable=SC2016
unshare --net --mount --propagation private -- /bin/sh -c '
    bridge=$1 number=$2 settings=$3
    shift 3
    { echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; } 2>/dev/null
    mount -t sysfs bridged-sys /sys && mount --bind "$TMPDIR/bridged-hosts" /etc/hosts &&
        ip -batch - <<END && nsenter --net=/proc/self/fd/9 ip link set paribus1 master "$bridge" up || exit 125
link set lo up
link add eth0 type veth peer name paribus1 netns /proc/self/fd/9
addr add 10.78.$number.1/24 dev eth0
link set eth0 up
route add default via 10.78.$number.254
END
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
    until read -r _ </sys/class/net/eth0/carrier && read -r state </sys/class/net/eth0/operstate &&
        [ "$state" = up ]; do :; done
    exec "$@" 9<&-' bridged "$bridge" "$number" "$settings" "$@" 9</proc/self/ns/net </dev/null &
wait $!
code=$?
[ "$code" -le 128 ] || wait $!
remove
cat "$saved" >"$forward"
exit "$code"
