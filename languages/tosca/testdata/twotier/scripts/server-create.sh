#!/bin/sh
set -eu
mkdir -p /var/tmp/www
echo created >>/var/tmp/www/order
echo "token=secret-$(hostname)" >>"$CROFT_OUTPUTS"
