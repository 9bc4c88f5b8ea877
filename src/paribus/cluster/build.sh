# Compiles ports.cpp for `paribus cluster` and prints the program in base64, then the line "$mark"; or
# the compiler's errors, after "! ". Set before: mark, compiler.
# shellcheck disable=SC2154
work=''
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM PIPE
for folder in "${TMPDIR:-/tmp}" /var/tmp /dev/shm "$HOME"; do
    work=$(mktemp -d "$folder/paribus-XXXXXXXX" 2>/dev/null) || continue
    if { cat >"$work/ports.cpp"; } 2>/dev/null <<'END'; then break; fi
@SOURCE@
END
    rm -rf "$work"
    work=''
done
flags='-std=c++17 -O1 -s -fno-exceptions -fno-rtti'
cd "${work:-/}" || exit 1
export TMPDIR="$work"
# With its own libstdc++ where there is a static one: nodes without a compiler need it too.
# shellcheck disable=SC2086
if "$compiler" $flags -static-libstdc++ -static-libgcc -o ports ports.cpp >log 2>&1 ||
    "$compiler" $flags -o ports ports.cpp >log 2>&1; then
    base64 ports
else
    head -n 20 log | sed 's/^/! /'
fi
echo "$mark"
