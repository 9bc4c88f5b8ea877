# keeper.sh SCRATCH NONCE NODE DIRECTORY...: stays on a node for a sitting, the only session there.
#
# From stdin come `start ID BYTES` and that many bytes of a script, `stop ID`, and `reply ID CODE TEXT`
# for an agent. To stdout go `NONCE ask ID BYTES` with what an agent asks for, and, when a script has
# ended, `NONCE done ID CODE BYTES BYTES BYTES` with its stdout, its stderr and what its guard said.
# When stdin is closed, the guards learn it from the pipe `life`; when they have left, each DIRECTORY
# is removed.
scratch=$1 nonce=$2 last=$1/keeper.$3 requests=$1/requests.$3 life=$1/life.$3
shift 3
echo "$$" >"$last"
# Caught, not ignored, which launches would inherit.
trap : HUP INT TERM PIPE
exec 8<>"$requests" 9<>"$life"

serve() { # One process writes, so that nothing is mixed.
    cd "$scratch/run" || exit
    while read -r word id code; do
        if [ "$word" = ask ]; then
            [ -f "../ask/$id" ] || continue
            printf '%s ask %s %s\n' "$nonce" "$id" "$(wc -c <"../ask/$id")"
            cat "../ask/$id"
            rm -f "../ask/$id"
        else
            # shellcheck disable=SC2046
            set -- $(stat -c %s "$id.out" "$id.err" "$id.said")
            printf '%s done %s %s %s %s %s\n' "$nonce" "$id" "$code" "$1" "$2" "$3"
            cat "$id.out" "$id.err" "$id.said"
            rm -f "$id".*
        fi
    done
}

(exec <"$requests" 8>&- 9>&- && serve) &
server=$!
while read -r word id rest; do
    case $word in
    start)
        head -c "$rest" >"$scratch/run/$id.sh"
        (
            exec 5<"$life" 8>&- 9>&- >"$scratch/run/$id.out" 2>"$scratch/run/$id.err" </dev/null
            : >"$scratch/run/$id.said"
            /bin/sh "$scratch/run/$id.sh" start
            echo "done $id $?" 1<>"$requests"
        ) &
        ;;
    stop)
        : >"$scratch/run/$id.stop"
        (exec 8>&- 9>&- >/dev/null 2>&1 </dev/null && /bin/sh "$scratch/run/$id.sh" stop) &
        ;;
    reply)
        [ ! -p "$scratch/ask/$id.reply" ] || echo "$rest" 1<>"$scratch/ask/$id.reply"
        ;;
    esac
done
exec 9>&-
tries=0
for one in "$scratch"/alive.*; do
    while [ -e "$one" ] && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
done
kill -KILL "$server"
# Not if another keeper has come, over a new connection, while this one did not know that its was lost.
read -r pid <"$last" && [ "$pid" = "$$" ] && rm -rf "$@"
