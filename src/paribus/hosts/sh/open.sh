# shellcheck disable=SC2154 # set by what is sent
# Begins a sitting on a node: its directories, and the scripts in them. Sent by keeper.py, which sets
# nonce, name, parent, node and again, and defines `written`; says NONCE ready, or NONCE failed and why.
umask 077
exec 2>&1
fail() {
    printf '%s failed %s\n' "$nonce" "$1"
    exit 1
}
parent=${parent:-${TMPDIR:-/tmp}}
parent=${parent%/}
scratch=$parent/$name
shared=/dev/shm/$name
case $(ls -ldL "$parent/") in
????????w[!tT]*) fail "everyone may write into $parent, and remove what is in it" ;;
esac
set --
why=$(mkdir "$scratch" 2>&1)
# shellcheck disable=SC2181
if [ $? = 0 ]; then
    trap 'rm -rf "$scratch"' EXIT
    { written && mkdir "$scratch/ask" "$scratch/run" && echo "$nonce" >"$scratch/sitting"; } ||
        fail "its files cannot be written"
    trap - EXIT
    set -- "$scratch"
else
    # Hosts may share their files: then another one made it, with all that is in it.
    tries=0
    until { read -r found <"$scratch/sitting"; } 2>/dev/null && [ "$found" = "$nonce" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] && [ -d "$scratch" ] || fail "${why#mkdir: }"
        sleep 0.1
    done
    [ -z "$again" ] || set -- "$scratch"
fi
# Each host has pipes of its own.
rm -f "$scratch/requests.$node" "$scratch/life.$node"
mkfifo "$scratch/requests.$node" "$scratch/life.$node" || fail "its pipes cannot be made"
if [ -d /dev/shm ] && { mkdir "$shared" 2>/dev/null || [ -n "$again" ]; }; then
    set -- "$@" "$shared"
fi
stat -f -c "$nonce room %a %S %d %c %n" "$scratch" /dev/shm 2>/dev/null
read -r boot </proc/sys/kernel/random/boot_id
read -r host </proc/sys/kernel/hostname
{ read -r machine </etc/machine-id; } 2>/dev/null
printf '%s machine %s %s/%s\n' "$nonce" "$(stat -L -c %i /proc/self/ns/net)" "$host" "$machine"
printf '%s ready %s %s\n' "$nonce" "$boot" "$scratch"
exec /bin/sh "$scratch/keeper.sh" "$scratch" "$nonce" "$node" "$@"
