#!/bin/sh
# agent.sh [OPTIONS] HOST COMMAND...: what ssh is between machines, by way of Paribus, which carries
# COMMAND out on HOST. Takes and drops ssh's options. 255: Paribus refused, or has no connection.
while :; do
    case $1 in
    -l | -o | -p | -i | -F | -e) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
umask 077
scratch=${0%/*}
name=$1
shift
ask=$scratch/ask/$PARIBUS_NODE-$$
requests=$scratch/requests.$PARIBUS_NODE
[ -p "$requests" ] || exit 255
rm -f "$ask.reply"
mkfifo "$ask.reply" || exit 255
# Both ends, here and there, so that neither waits for the other to open it.
exec 4<>"$ask.reply"
printf '%s\n%s\n%s' "$PARIBUS_LAUNCH" "$name" "$*" >"$ask" || exit 255
echo "ask ${ask##*/}" 1<>"$requests"
read -r code said <&4
[ -z "$said" ] || printf '%b\n' "$said" >&2
rm -f "$ask.reply"
exit "$code"
