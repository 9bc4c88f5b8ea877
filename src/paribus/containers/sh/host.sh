#!/bin/sh
# host.sh DIRECTORY NAME ADDRESS SETTINGS: PID 1 of a container that stands for a host.
here=$1 name=$2 address=$3 settings=$4
set -e
mount -a -T "$here/host.fstab"
{ echo "$name" >/proc/sys/kernel/hostname; } 2>/dev/null || hostname "$name"
{ echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; } 2>/dev/null || :
# Hosts that share files share the names made of pids, such as PRRTE's session directories: as on
# real hosts, pids differ.
{ echo $((100 * ${name#?} % 30000)) >/proc/sys/kernel/ns_last_pid; } 2>/dev/null || :
ip -batch - <<END
link set lo up
link add eth0 type veth peer name $name netns /proc/self/fd/9
addr add $address/16 dev eth0
link set eth0 up
END
IFS='
'
for line in $settings; do
    { echo "${line#*:}" >"${line%%:*}"; } 2>/dev/null ||
        echo "paribus: $name could not take over ${line%%:*} = ${line#*:}" >&2
done
# shellcheck source=/dev/null
[ ! -r "$here/more.sh" ] || . "$here/more.sh"
echo ready >&3
exec sleep 2147483647 3>&- 9<&-
