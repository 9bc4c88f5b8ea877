#!/bin/sh
# fabric.sh DIRECTORY TCP COMMAND...: PID 1 of the fabric. Lets the engine make the network, starts
# COMMAND, and ends with its exit code; the kernel then ends and removes all that was made here.
here=$1 outer=$2
shift 2
# PID 1 is deaf to signals that it does not trap, and unshare(1), its parent, blocks TERM.
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP

give_up() {
    echo "paribus: $1" >&2
    exit 125
}

mount -a -T "$here/fabric.fstab" || give_up 'the fabric could not mount its own /proc and /sys'
[ -r "$here/engine.sh" ] || give_up "TMPDIR lies in /run, which the fabric hides: set another"
{ echo fabric >/proc/sys/kernel/hostname; } 2>/dev/null || hostname fabric ||
    give_up 'the fabric could not be given a host name'
# No router solicitations and no duplicate address detection while MPI is measured.
{ echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; } 2>/dev/null

# Settings in which a new network namespace differs from the machine: containers take the machine's.
newline='
'
inner=$newline$(grep -s . /proc/sys/net/ipv4/tcp_* /proc/sys/net/core/[rw]mem_*)$newline
settings=
IFS=$newline
for line in $outer; do
    case $inner in *"$newline$line$newline"*) continue ;; esac
    case $line in *tcp_fastopen_key:*) continue ;; esac
    [ -w "${line%%:*}" ] && settings=$settings$line$newline
done
unset IFS

# shellcheck source=/dev/null
. "$here/engine.sh"

# A port forwards, and the bridge sends, only after the kernel has acted on their carriers, which it
# does a moment later; a first packet lost to that costs a second. Reading `carrier` makes recent
# kernels act at once.
for link in /sys/class/net/*/brport /sys/class/net/br0; do
    [ "$link" = "${link%/brport}" ] ||
        until read -r word <"$link/state" && [ "$word" = 3 ]; do read -r _ <"${link%/*}/carrier"; done
    link=${link%/brport}
    until read -r _ <"$link/carrier" && read -r word <"$link/operstate" && [ "$word" = up ]; do :; done
done

"$@" </dev/null 3>&- 9<&- &
wait $!
