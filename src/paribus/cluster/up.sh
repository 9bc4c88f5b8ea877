# Puts a node into a cluster: files of the cluster in "$folder", and its key into authorized_keys, where
# it is written down what was there before. Changes nothing the second time. Set before: folder, tag,
# key (the line for authorized_keys); put is called for each file, then add_key.
# shellcheck disable=SC2154
umask 077
say() { echo "$1"; }
# put NAME MODE: standard input becomes a file, unless it is there already.
put() {
    cat >"$folder/$1.new" || { say "! $folder/$1 cannot be written: is the disk full?" && exit 1; }
    chmod "$2" "$folder/$1.new"
    if [ -r "$folder/$1" ] && [ "$(cksum <"$folder/$1")" = "$(cksum <"$folder/$1.new")" ]; then
        rm -f "$folder/$1.new"
    else
        mv -f "$folder/$1.new" "$folder/$1"
        say "changed $1"
    fi
}
add_key() {
    keys=$HOME/.ssh/authorized_keys
    case $(cat "$keys" 2>/dev/null) in *"$key"*) return ;; esac
    had=yes
    [ -d "$HOME/.ssh" ] || { had=no && mkdir -m 700 "$HOME/.ssh"; } || exit 1
    size=-1
    [ ! -e "$keys" ] || size=$(($(wc -c <"$keys")))
    begin=$((size < 0 ? 0 : size))
    if [ "$size" -gt 0 ] && [ -n "$(tail -c 1 "$keys")" ]; then begin=$((size + 1)); fi
    echo "$had $size $begin" >"$folder/undo" || exit 1
    new=$keys.$tag
    {
        if [ "$size" -ge 0 ]; then cp -p "$keys" "$new"; fi &&
            {
                if [ "$size" -ge 0 ]; then cat "$keys"; fi
                if [ "$begin" -gt "$size" ] && [ "$size" -gt 0 ]; then echo; fi
                echo "$key"
            } >"$new" && [ $(($(wc -c <"$new"))) -eq $((begin + ${#key} + 1)) ] &&
            # A link stays one.
            if [ -L "$keys" ]; then cat "$new" >"$keys"; else mv -f "$new" "$keys"; fi
    } || {
        rm -f "$new"
        say "! $keys cannot be written: is the disk full, or the home read-only?"
        exit 1
    }
    rm -f "$new"
    say "changed authorized_keys"
}
mkdir -p "$folder" || { say "! $folder cannot be made" && exit 1; }
