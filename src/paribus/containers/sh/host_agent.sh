#!/bin/sh
# host_agent.sh [OPTIONS] HOST COMMAND...: has the agent beside the sitting carry COMMAND out on HOST, in
# the container that stands for it. Takes and drops ssh's options.
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
quoted=$(printf %s "$*" | sed "s/'/'\\\\''/g")
exec /bin/sh "${here%/*}/agent.sh" "$name" "$(cat "$here/container.argv") /bin/sh -c '$quoted'"
