#!/bin/sh
# podman_agent.sh [OPTIONS] HOST COMMAND...: what ssh is between machines. Takes and drops ssh's options.
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
# As in any container, the environment is its own: hand over the launcher's.
command="$(export -p)
$*"
# shellcheck source=/dev/null
. "$here/environment.sh"
# shellcheck disable=SC2086,SC2154
exec podman --root "$work/store" --runroot "$work/run" $storage --runtime "$runtime" \
    exec "$name" /bin/sh "$here/enter.sh" "$PWD" "$here" "$command"
