#!/bin/sh
set -eu
case "$url" in "http://$server:"*) ;; *) echo "url $url is not of $server" >&2; exit 1 ;; esac
case "$token" in secret-*) ;; *) echo "token is $token" >&2; exit 1 ;; esac
mkdir -p /var/tmp/client
echo "$url" >/var/tmp/client/url
