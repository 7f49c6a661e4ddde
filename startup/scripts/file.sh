# Writes a file from standard input. Arguments: path, permission bits, account
# that owns it.
case $1 in */*) mkdir -p "${1%/*}" ;; esac
cat > "$1" && chmod "$2" "$1" && chown "$3:" "$1"
