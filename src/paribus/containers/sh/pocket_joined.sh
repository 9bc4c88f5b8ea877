#!/bin/sh
# pocket_joined.sh DIRECTORY COUNT [PROGRAM...]: the command of a pocket cluster's fabric. Says `up`
# when COUNT hosts have their links, and ends when the controller does.
here=$1 count=$2
shift 2
[ ! -r "$here/ports.tc" ] || tc -batch "$here/ports.tc" || exit 125
exec 6<>"$here/go"
while [ "$count" -gt 0 ]; do
    read -r word
    [ "$word" != failed ] || exit 125
    [ "$word" != linked ] || count=$((count - 1))
done <>"$here/ready"
[ $# -eq 0 ] || exec "$@"
echo up
read -r _ <&4
