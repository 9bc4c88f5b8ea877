# podman_store.sh: where podman's images are. The callers have `give_up` and $work, a directory of their own.
# shellcheck shell=sh disable=SC2154,SC2034
values_of() { # values_of KEY FILE: the values of KEY in a storage.conf(5), one a line
    { echo && sed 's/#.*//' "$2"; } 2>/dev/null | tr '\n' ' ' |
        sed -nE "s/.*[[:space:]]$1[[:space:]]*=[[:space:]]*(\[[^]]*\]|\"[^\"]*\"|'[^']*').*/\1/p" |
        grep -oE "\"[^\"]*\"|'[^']*'" | tr -d "\"'" | sed "s|\$HOME|$HOME|g;s|\$USER|${USER-}|g;s|\$UID|$uid|g"
}

find_stores() { # Sets $store, of whoever asks, and $stores: that and additional ones, bound, with commas.
    read -r _ uid _ </proc/self/uid_map # of who made the namespace
    system=/etc/containers/storage.conf own=${XDG_CONFIG_HOME:-$HOME/.config}/containers/storage.conf
    [ -r "$system" ] || system=/usr/share/containers/storage.conf
    [ -z "${CONTAINERS_STORAGE_CONF-}" ] || system=$CONTAINERS_STORAGE_CONF own=$CONTAINERS_STORAGE_CONF
    store=$(values_of graphroot "$system") stores=
    : "${store:=/var/lib/containers/storage}"
    if [ ! -w "$store" ]; then
        store=$(values_of graphroot "$own")
        : "${store:=$(values_of rootless_storage_path "$system")}"
        : "${store:=${XDG_DATA_HOME:-$HOME/.local/share}/containers/storage}"
    fi
    while read -r place; do
        [ -r "$place/overlay-images" ] || continue
        mkdir -p "$work/images/${#stores}"
        mount --rbind "$place" "$work/images/${#stores}" || give_up "podman's images in $place cannot be used"
        stores=$stores${stores:+,}$work/images/${#stores}
    done <<END
$({ echo "$store" && values_of additionalimagestores "$system" && values_of additionalimagestores "$own"; } | awk '!had[$0]++')
END
}
