#!/bin/sh
# agent.sh [OPTIONS] HOST COMMAND...: what ssh is between machines. Takes and drops ssh's options.
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
read -r pid <"$here/$name.pid" || exit 255
exec nsenter -t "$pid" -m -u -n -i --pid="/proc/$pid/ns/pid_for_children" -- \
    /bin/sh "$here/enter.sh" "$PWD" "$here/tmp" "$*"
