#!/bin/sh
# podman_host.sh DIRECTORY NAME ADDRESS SETTINGS: start the podman container that stands for a host.
here=$1 name=$2 address=$3 settings=$4
# shellcheck source=/dev/null
. "$here/environment.sh"

set -- --name "$name" --hostname "$name" --network paribus --ip "$address" --no-hosts \
    -v "$here/hosts:/etc/hosts:ro"
IFS='
'
for line in $settings; do
    path=${line%%:*} value=${line#*:}
    case $path in
    */ipv4/*) set -- "$@" --sysctl "net.ipv4.${path##*/}=$value" ;;
    */core/*) set -- "$@" --sysctl "net.core.${path##*/}=$value" ;;
    esac
done
unset IFS
# Each host has a scratch directory of its own, with the files of the launch in it: names in it are
# made of pids, which are the same in all containers.
set -- "$@" --tmpfs "$here:mode=1777,exec,notmpcopyup"
for file in "$here"/*; do
    [ -f "$file" ] && set -- "$@" -v "$file:$file"
done
if [ -r "$here/image" ]; then
    read -r root <"$here/image"
    set -- "$@" --pull never --entrypoint ''
    # shellcheck disable=SC2154
    while read -r place; do
        set -- "$@" -v "$place:$place"
    done <"$work/binds"
else
    root="--rootfs $work/rootfs"
fi

# Without CAP_SYS_RESOURCE podman's own limits, above the hard ones, are refused.
while read -r first second third fourth _; do
    case $first-$second in
    Max-processes) processes=$third ;;
    Max-open) files=$fourth ;;
    esac
done </proc/self/limits
case $processes in
unlimited) processes=8192 ;;
*) [ "$processes" -le 8192 ] || processes=8192 ;;
esac
[ "$files" -le 16384 ] || files=16384
# shellcheck disable=SC2086,SC2154
exec podman --root "$work/store" --runroot "$work/run" $storage --runtime "$runtime" \
    run --detach --log-driver none --security-opt label=disable \
    --ulimit "nofile=$files:$files" --ulimit "nproc=$processes:$processes" \
    --cgroups disabled --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup \
    -v "$work/pts:/dev/pts" "$@" $root /bin/sh -c 'while :; do sleep 2147483647; done' >/dev/null
