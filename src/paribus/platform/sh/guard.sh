# guard.sh: carries out one command of a launch on a node, and leaves nothing of it behind.
#
# Sourced by the script that guard.py writes, which comes through the connection and sets scratch,
# name, number, nonce, cwd, stay, told, segments and adapters; `written` makes the files of the
# command, `started` becomes it, `found` says whether its program is there, `outputs` prints what it
# wrote into files. When it has ended, what guard.py reads goes to stderr, between NONCE( and NONCE).
#
# A watcher, which nobody waits for, holds the connection: when that is closed, whoever did it, it
# ends every process that carries the mark in its environment, and removes what is left.
umask 077
exec 5<&0 6>&2 </dev/null 2>/dev/null
here=$scratch/$name
shared=/dev/shm/${scratch##*/}/$name
alive=$scratch/alive.$nonce.$number
mark=PARIBUS_GUARD_$number=$nonce
made='' shm=''

refuse() { # refuse KIND TEXT: nothing was started
    clean
    printf '%s(\n%s %s\n%s)\n' "$nonce" "$1" "$2" "$nonce" >&6
    exit 1
}

sent() { # sent SIGNAL: whether processes of the command were there to be sent it
    pids=
    for one in $(grep -slF "$mark" /proc/[0-9]*/environ); do
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
    rm -rf ${made:+"$here"} ${shm:+"$shared"} "$alive"
}

finished() { # finished SECONDS: whether the one that waits for the command has left in time
    left=$(($1 * 20))
    while [ -e "$alive" ]; do
        kill -0 "$$" || return 1
        left=$((left - 1))
        [ "$left" -ge 0 ] || return 1
        sleep 0.05
    done
}

watch() { # stdin is the connection, on which nothing comes
    trap '' HUP INT TERM
    while read -r _; do :; done
    sent TERM
    finished 2 && exit
    sweep KILL
    finished 1 && exit
    read -r children <"/proc/$$/task/$$/children"
    # shellcheck disable=SC2086
    kill -KILL "$$" $children
    sweep KILL
    clean
}

readings() { # the files that tell how busy the node is, as PATH:LINE
    # shellcheck disable=SC2086
    grep -sHv -e '^intr' -e '^softirq' /proc/loadavg /proc/stat /proc/pressure/cpu \
        /proc/pressure/io /proc/pressure/memory $groups $adapters $processes
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

why=$({ : >"$alive"; } 2>&1) || refuse machine "$why"
if [ ! -e "$here" ]; then
    if [ -d "${shared%/*}" ] && [ ! -e "$shared" ]; then
        why=$(mkdir "$here" "$shared" 2>&1) && made=yes shm=yes
    else
        why=$(mkdir "$here" 2>&1) && made=yes
    fi
fi
[ -d "$here" ] || refuse machine "$why"
watcher=$( (exec <&5 >/dev/null 6>&- && watch) & echo $!)
exec 5<&-
if [ -n "$made" ]; then
    why=$(written 2>&1) || refuse machine "$why"
fi

loaded=
read -r opened _ </proc/uptime
[ -z "$told" ] || loaded=$(readings)
read -r began _ </proc/uptime
(
    cd "${cwd:-$here}" || exit 126
    export "PARIBUS_LAUNCH=$nonce" "PARIBUS_GUARD_$number=$nonce"
    [ -n "$cwd" ] || export "TMPDIR=$here"
    started
) 2>&6 6>&-
code=$?
read -r ended _ </proc/uptime
times >"$alive"
trap '' PIPE
[ -n "$stay" ] || sweep TERM
case $code in 126 | 127) (found) || refuse program 'not found, or not executable' ;; esac
outputs
[ -z "$told" ] || {
    read -r closed _ </proc/uptime
    printf '%s(\nexit %s\nown %s\n' "$nonce" "$code" "$$"
    printf 'seconds %s %s\nwindow %s %s\n' "$began" "$ended" "$opened" "$closed"
    { read -r _ && read -r spent; } <"$alive"
    printf 'spent %s\n' "$spent"
    [ "$code" = 0 ] || stat -f -c 'room %a %S %d %c %n' "$here" "$shared"
    printf 'before\n%s\nafter\n' "$loaded"
    readings
    printf '%s)\n' "$nonce"
} >&6
[ -n "$stay" ] || clean
kill -KILL "$watcher"
exit "$code"
