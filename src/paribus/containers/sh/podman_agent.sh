#!/bin/sh
# podman_agent.sh [OPTIONS] HOST COMMAND...: starts the container that stands for HOST, with COMMAND
# as its main process. Takes and drops ssh's options.
while :; do
    case $1 in
    -l | -o | -p | -i | -F | -e) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
here=${0%/*}
name=$1
shift
command=$*
while read -r address word; do
    [ "$word" = "$name" ] && break
done <"$here/hosts"

set -- --name "$name" --hostname "$name" --network paribus --ip "$address" --no-hosts \
    -v "$here/hosts:/etc/hosts:ro"
while IFS=: read -r path value; do
    case $path in
    */ipv4/*) set -- "$@" --sysctl "net.ipv4.${path##*/}=$value" ;;
    */core/*) set -- "$@" --sysctl "net.core.${path##*/}=$value" ;;
    esac
done <"$here/settings"
# Each host has a scratch directory of its own, with the files of the launch in it: names in it are
# made of pids, which are the same in all containers.
set -- "$@" --tmpfs "$here:mode=1777,exec,notmpcopyup"
for file in "$here"/*; do
    [ -f "$file" ] && set -- "$@" -v "$file:$file"
done
. "$here/podman_run.sh"
podman_run "$@" --rootfs /run/paribus/rootfs /bin/sh "$here/enter.sh" "$PWD" "$here" "$command"
