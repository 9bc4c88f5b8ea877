# What Paribus asks of a machine that it reaches through a shell alone. These functions are sent
# before each question, all in one compound command, so that nothing is read from standard input
# while it is run. $token stands before each value of an answer, $last after them: both are
# new each time, so that nothing else can hold them.
: "${token:?}" "${last:?}"
umask 022
set -f
IFS=:
kept=
# What an entry that is not absolute leads to depends on where one is.
for place in ${PATH-}; do
    case $place in /*) kept=$kept${kept:+:}$place ;; esac
done
unset IFS
export PATH="${kept:-/bin:/usr/bin}"

job=
draft=
leave() {
    cd / && [ -z "$draft" ] || rm -rf "$draft"
    kill "$watcher"
    exit "$1"
}
end() {
    trap '' TERM HUP INT
    [ "$job" != starting ] || job=$!
    # It is `timeout`, which hands the signal to all that it started. A shell that has only just been
    # forked to become it may lose the signal, so it is sent again as long as it is waited for: no
    # other process can have its number then.
    [ -z "$job" ] || {
        kill "$job"
        while sleep 1 && kill -0 "$$" && kill "$job"; do :; done >/dev/null 2>&1 &
        wait "$job"
        kill -KILL "$!"
        # A signal between its fork and the note that it takes of that ends `timeout` (coreutils 9.1)
        # and not its child, which has the group's number then, and keeps it from all others.
        kill -TERM "-$job" 2>/dev/null
    }
    leave 1
}
trap end TERM HUP INT
# Standard input stays open while somebody listens: its end is the end of Paribus, or of the way to
# it.
exec 3<&0 </dev/null
(read -r _ || kill "$$") <&3 3<&- >/dev/null 2>&1 &
watcher=$!
exec 3<&-

say() { printf '%s%s' "$token" "$1"; }
finish() {
    kill "$watcher" # whoever has the answer may go
    printf '%s' "$last"
    leave 0
}
# shellcheck disable=SC2034 # questions name it: it must be found whatever PATH a command is given
within=$(command -v timeout)
run() { # COMMAND...: run it; its exit code is in $code
    job=starting # a signal may come before the next line has kept its number
    "$@" </dev/null &
    job=$!
    wait "$job"
    code=$?
    job=
    return "$code"
}
heard() { # COMMAND...: say what it prints, then its exit code
    say ''
    printf '%s' "$token" >&2
    run "$@"
    printf '%s' "$token" >&2
    say "$code"
}
look() { # PATH...: say of each what it is
    for path; do
        is=
        [ -d "$path" ] && is=d
        [ -f "$path" ] && is=f
        [ -r "$path" ] && is=${is}r
        [ -x "$path" ] && is=${is}x
        say "$is"
    done
}

# --- who else could change a file: as trust.py, whose comments give the reasons ------------------

me=$(id -u)
nobody=none
# Not by `read`: dash takes a byte at a time, and of numbers in /proc/sys gets the first digit.
if overflow=$(cat /proc/sys/kernel/overflowuid); then
    nobody=$overflow
    while read -r inside _ count; do
        [ "$overflow" -lt "$inside" ] || [ "$overflow" -ge $((inside + count)) ] || nobody=none
    done </proc/self/uid_map
fi 2>/dev/null
entries() { getent "$1" 2>/dev/null || cat "/etc/$1"; }
private() { # GROUP: whether only this user can be in it
    [ "$1" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ] || return 1
    members=$(entries group | grep "^[^:]*:[^:]*:$1:")
    case ${members##*:} in '' | "$(id -un)") ;; *) return 1 ;; esac
    [ "$(entries passwd | grep -c "^[^:]*:[^:]*:[^:]*:$1:")" -le 1 ]
}
bad() { # ENTRY ABOVE: print why it cannot be trusted; ABOVE is not empty if it is only on the way
    # shellcheck disable=SC2046 # words: mode, links, owner, group
    set -- "$1" "$2" $(LC_ALL=C ls -ldn -- "$1")
    [ "$#" -gt 6 ] || { echo "$1 cannot be looked at"; return 0; }
    case $5 in
    0 | "$me") ;;
    "$nobody") [ -n "$2" ] || { echo "$1 belongs to nobody"; return 0; } ;;
    *) echo "$1 belongs to user $5"; return 0 ;;
    esac
    case $3 in
    l*) return 1 ;;
    ?????????[tT]*) [ -z "$2" ] || return 1 ;;
    esac
    case $3 in
    ????????w*) echo "everyone may write to $1" ;;
    ?????w????+*) echo "a group may write to $1" ;;
    ?????w*) ! private "$6" && echo "the group $6 may write to $1" ;;
    *) return 1 ;;
    esac
}
why() { # PATH: print why others could change it
    todo=${1#/} at=/ steps=0
    while steps=$((steps + 1)) && [ "$steps" -le 1000 ]; do
        bad "$at" "$todo" && return 0
        [ -n "$todo" ] || return 1
        name=${todo%%/*}
        case $todo in */*) todo=${todo#*/} ;; *) todo= ;; esac
        entry=${at%/}/$name
        case $name in
        '' | .) continue ;;
        ..) entry=${at%/*} && at=${entry:-/} && continue ;;
        esac
        if [ -h "$entry" ]; then
            bad "$entry" '' && return 0
            target=$(readlink "$entry") || return 1
            case $target in /*) at=/ ;; esac
            todo=$target/$todo
        elif [ -e "$entry" ]; then
            at=$entry
        else
            return 1
        fi
    done
    echo "$1 leads through too many links"
}
trusted() { # PATH: go on if nobody else can change it and what is in it
    reason=$(why "$1") && { say distrusted; say "$reason"; finish; }
    set +f
    for entry in "$1"/*; do
        [ -e "$entry" ] && reason=$(bad "$entry" '') && { say distrusted; say "$reason"; finish; }
    done
    set -f
}

# --- files that appear complete, or not at all ---------------------------------------------------

unwritable() {
    say unwritable
    say "$1"
    finish
}
begin() { # TARGET: work from now on in a new directory beside it, where `made` becomes it
    made=$1 beside=${1%/*} steps=0
    said=$(mkdir -p "$beside" 2>&1 && mktemp -d "$beside/.building-XXXXXXXX" 2>&1) ||
        unwritable "$said"
    draft=$said
    cd "$draft" || unwritable "$draft"
    export TMPDIR="$draft"
    # Those whose maker was killed together with the machine, or its shell.
    find "$beside" -maxdepth 1 -name '.building-*' -mtime +0 -exec rm -rf {} + 2>/dev/null
}
put() { # NAME DATA: write a file that is given in base64
    said=$({ mkdir -p "./$(dirname "$1")" && printf '%s' "$2" | base64 -d >"./$1"; } 2>&1) ||
        unwritable "$said"
}
step() { # COMMAND...: run it, or say how it failed
    steps=$((steps + 1))
    run "$@" >build.out 2>build.err && return
    said=$({ head -c 65536 /dev/zero >room; } 2>&1) || unwritable "$said"
    { echo "\$ $*" && cat build.out build.err; } >"$made.log"
    say failed
    say "$steps"
    say "$code"
    say "$(head -c 65536 build.out)"
    say "$(head -c 65536 build.err)"
    finish
}
keep() { # let `made` become the target
    set +f
    said=$({
        chmod -R u=rwx,go=rx made || exit
        if [ -d made ] && [ -d "$1" ]; then mv -f made/* "$1"; else mv -fT made "$1"; fi
    } 2>&1) || [ -d "$1" ] || unwritable "$said"
    set -f
}
show() { # PATH CONTENTS: say name and hash of each file; with CONTENTS not empty, in base64 too
    set -- "$2" "$1"
    [ ! -d "$2" ] || { set +f; set -- "$1" "$2"/*; set -f; }
    contents=$1
    shift
    for path; do
        [ -f "$path" ] || continue
        say "${path##*/}"
        say "$(sha256sum <"$path")"
        [ -z "$contents" ] || say "$(base64 <"$path")"
    done
}
