#!/bin/sh
set -eu
test "$(tail -n 1 /var/tmp/www/order)" = configured
cd /var/tmp/www
python3 -m http.server --bind "$address" "$port" </dev/null >/dev/null 2>&1 &
echo "url=http://$address:$port/index.html" >>"$CROFT_OUTPUTS"
