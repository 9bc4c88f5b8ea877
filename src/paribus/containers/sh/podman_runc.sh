#!/bin/sh
# podman_runc.sh ARGUMENTS...: runc for a podman that makes no cgroups. Drops --cgroup-manager, which
# is crun's, and adds the option that makes runc do without them.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
    --cgroup-manager) shift && count=$((count - 1)) ;;
    --cgroup-manager=*) ;;
    *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done
exec runc --rootless=true "$@"
