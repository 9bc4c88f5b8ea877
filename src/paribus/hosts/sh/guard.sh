# guard.sh: runs one command of a launch on a node, and leaves nothing of it behind.
#
# Sourced by the script that guard.py writes, which sets scratch, name, number, nonce, cwd, stay,
# segments, adapters, energy, gpus, gpu_counters and bmc; `written` makes the files of the command,
# `started` becomes it, `found` says whether its program is there, `outputs` prints what it wrote
# into files, `power` the machine's mean power. What guard.py reads when it has ended goes into a
# file. With the argument `stop`, one that goes on is ended.
#
# A watcher, which nobody waits for, reads the pipe of the keeper (5), on which nothing comes: when it
# is closed, by whatever, the watcher ends every process that carries the mark in its environment,
# and removes what is left.
# shellcheck disable=SC2154,SC2013

umask 077
id=$nonce.$number
exec 6>&2 7>>"$scratch/run/$id.said" 2>/dev/null
here=$scratch/$name
shared=/dev/shm/${scratch##*/}/$name
alive=$scratch/alive.$id
mark=PARIBUS_GUARD_$number=$nonce
made=- shm=- watcher=

refuse() { # refuse KIND TEXT: nothing was started
    [ -z "$watcher" ] || kill -KILL "$watcher"
    clean
    echo "$1 $2" >&7
    exit 1
}

sent() { # sent SIGNAL: whether processes of the command were there to be sent it
    pids=
    # No -F: with it, busybox stops at the first NUL of an environment.
    for one in $(grep -sl "$mark" /proc/[0-9]*/environ); do
        one=${one#/proc/}
        pids="$pids ${one%/environ}"
    done
    [ -n "$pids" ] || return 1
    # shellcheck disable=SC2086
    kill "-$1" $pids
    return 0
}

sweep() { # sweep SIGNAL: end all that is left of the command, by KILL at last
    tries=0 signal=$1
    while sent "$signal"; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || signal=KILL
        [ "$tries" -lt 500 ] || return
        sleep 0.01
    done
}

clean() { # Killed ranks leave segments: those that are new, ours, and mapped by nobody.
    for one in $segments; do
        # shellcheck disable=SC3067
        [ -f "$one" ] && [ -O "$one" ] || continue
        case $before_it in *" $one "*) continue ;; esac
        grep -sqF "$one" /proc/[0-9]*/maps || rm -f "$one"
    done
    set --
    [ "$made" = - ] || set -- "$here"
    [ "$shm" = - ] || set -- "$@" "$shared"
    rm -rf "$@" "$alive"
}

finished() { # finished SECONDS: whether the one that waits for the command has left in time
    left=$(($1 * 20))
    while [ -e "$alive" ]; do
        kill -0 "$front" || return 1
        left=$((left - 1))
        [ "$left" -ge 0 ] || return 1
        sleep 0.05
    done
}

stop() { # end the command; the one that waits for it cleans up, if it is still there
    read -r front made shm <"$alive" || return
    sent TERM
    finished 2 && return
    sweep KILL
    finished 1 && return
    read -r children <"/proc/$front/task/$front/children"
    # shellcheck disable=SC2086
    kill -KILL "$front" $children
    sweep KILL
    clean
}

readings() { # readings [SINCE]: the files that say how busy node and networks are, as PATH:LINE
    # shellcheck disable=SC2086
    grep -sHv -e '^intr' -e '^softirq' /proc/loadavg /proc/stat /proc/net/dev /proc/pressure/cpu \
        /proc/pressure/io /proc/pressure/memory $groups $adapters $energy $processes
    [ ! -e "$gpus" ] || python3 -I -S -c "$gpu_counters" "${1:-}" 2>/dev/null
}

[ "$1" = start ] || {
    segments=
    stop
    exit
}
groups=
while IFS=: read -r _ kind path; do
    case ",$kind," in ,,) base=/sys/fs/cgroup ;; *,cpu,*) base=/sys/fs/cgroup/$kind ;; *) continue ;; esac
    while :; do
        path=${path%/}
        [ ! -f "$base$path/cpu.stat" ] || groups="$groups $base$path/cpu.stat"
        [ -n "$path" ] || break
        path=${path%/*}
    done
    [ -z "$groups" ] || break
done </proc/self/cgroup
set -- /proc/[0-9]*
processes=
[ "$#" -gt 1000 ] || processes='/proc/[0-9]*/stat'
before_it=' '
for one in $segments; do before_it="$before_it$one "; done

why=$({ echo "$$" >"$alive"; } 2>&1) || refuse machine "$why"
[ ! -e "$scratch/run/$id.stop" ] || refuse machine 'it was stopped before it began'
if [ ! -e "$here" ]; then
    if [ -d "${shared%/*}" ] && [ ! -e "$shared" ]; then
        why=$(mkdir "$here" "$shared" 2>&1) && made=yes shm=yes
    else
        why=$(mkdir "$here" 2>&1) && made=yes
    fi
fi
[ -d "$here" ] || refuse machine "$why"
echo "$$ $made $shm" >"$alive"
watcher=$( (
    exec <&5 5<&- 6>&- 7>&- >/dev/null
    trap '' HUP INT TERM
    while read -r _; do :; done
    stop
) & echo $!)
exec 5<&-
if [ "$made" = yes ]; then
    why=$(written 2>&1) || refuse machine "$why"
fi

read -r opened _ </proc/uptime
loaded=$(readings)
# Where date(1) knows nanoseconds; busybox prints other words. The uptimes are nearest to the command:
# they count where a busy node holds date(1) up.
finely=$(date +%s.%N)
read -r began _ </proc/uptime
(
    cd "${cwd:-$here}" || exit 126
    export "PARIBUS_LAUNCH=$nonce" "PARIBUS_GUARD_$number=$nonce"
    [ -n "$cwd" ] || export "TMPDIR=$here"
    started
) 2>&6 6>&- 7>&-
code=$?
read -r ended _ </proc/uptime
times >>"$alive"
finely="$finely $(date +%s.%N)"
[ -n "$stay" ] || sweep TERM
case $code in 126 | 127) (found) || refuse program 'not found, or not executable' ;; esac
outputs
{
    read -r closed _ </proc/uptime
    printf 'exit %s\nown %s\n' "$code" "$$"
    printf 'seconds %s %s\nfinely %s\n' "$began" "$ended" "$finely"
    printf 'window %s %s\n' "$opened" "$closed"
    { read -r _ && read -r _ && read -r spent; } <"$alive"
    printf 'spent %s\n' "$spent"
    [ "$code" = 0 ] || stat -f -c 'room %a %S %d %c %n' "$here" "$shared"
    printf 'before\n%s\nafter\n' "$loaded"
    readings "$opened"
    power "$((${ended%.*} - ${began%.*} - 1))"
    echo whole
} >&7
[ -n "$stay" ] || clean
kill -KILL "$watcher"
exit "$code"
