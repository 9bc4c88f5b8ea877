# Takes a node out of a cluster: authorized_keys becomes what it was, byte for byte if nobody else
# changed it, and "$folder" goes. Set before: folder, tag, mark.
# shellcheck disable=SC2154
umask 077
keys=$HOME/.ssh/authorized_keys new=$HOME/.ssh/authorized_keys.$tag
had=yes size=-1 begin=-1
[ ! -r "$folder/undo" ] || read -r had size begin <"$folder/undo"
# replace COMMAND...: what it prints becomes authorized_keys.
replace() {
    if ! { cp -p "$keys" "$new" && "$@" >"$new"; }; then
        rm -f "$new"
        echo "! $keys cannot be written"
        exit 1
    fi
    if [ -L "$keys" ]; then cat "$new" >"$keys"; else mv -f "$new" "$keys"; fi
    rm -f "$new"
    echo "changed authorized_keys"
}
rm -f "$new"
case $(cat "$keys" 2>/dev/null) in
*"$tag")
    # It is the last line still: what was there before is the beginning.
    line=$(tail -n 1 "$keys")
    added=$(($(wc -c <"$keys") - ${#line} - 1))
    if [ "$size" -lt 0 ] && [ "$added" -eq 0 ]; then
        rm -f "$keys"
        [ "$had" = yes ] || rmdir "$HOME/.ssh" 2>/dev/null
        echo "changed authorized_keys"
    elif [ "$added" -eq "$begin" ]; then
        replace head -c "$size" "$keys"
    else
        replace sed "/$tag\$/d" "$keys"
    fi
    ;;
*"$tag"*) replace sed "/$tag\$/d" "$keys" ;;
esac
[ ! -d "$folder" ] || echo "changed $folder"
rm -rf "$folder" && [ ! -e "$folder" ] || echo "! $folder cannot be removed"
