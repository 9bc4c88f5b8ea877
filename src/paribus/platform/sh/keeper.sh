# keeper.sh SCRATCH NONCE NODE DIRECTORY...: stays on a node for a sitting. Hands what agent.sh asks for to
# Paribus on stdout, and the answers from stdin back. When stdin is closed it waits until the guards
# have left, and removes each DIRECTORY.
scratch=$1 nonce=$2 last=$1/keeper.$3
shift 3
echo "$$" >"$last"
trap '' HUP INT TERM PIPE
while read -r id; do
    [ -f "$scratch/ask/$id" ] || continue
    printf '%s ask %s %s\n' "$nonce" "$id" "$(wc -c <"$scratch/ask/$id")"
    cat "$scratch/ask/$id"
    rm -f "$scratch/ask/$id"
done <>"$scratch/requests" &
server=$!
while read -r id code said; do
    [ ! -p "$scratch/ask/$id.reply" ] ||
        printf '%s %s\n' "$code" "$said" 1<>"$scratch/ask/$id.reply"
done
kill -KILL "$server"
tries=0
for one in "$scratch"/alive.*; do
    while [ -e "$one" ] && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
done
# Not if another keeper has come, over a new connection, while this one did not know that its was lost.
read -r pid <"$last" && [ "$pid" = "$$" ] && rm -rf "$@"
