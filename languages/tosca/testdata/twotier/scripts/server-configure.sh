#!/bin/sh
set -eu
. ./common.sh
test "$(cat /var/tmp/www/order)" = created
echo "$greeting" >/var/tmp/www/index.html
echo configured >>/var/tmp/www/order
