#!/bin/sh
# start.sh PORT FOLDER: nginx with this folder's configuration; what it writes goes to FOLDER.
set -e
here=$(cd "$(dirname "$0")" && pwd)
sed "s#PORT#$1#g; s#SCRATCH#$2#; s#root pages#root $here/pages#" "$here/nginx.conf" >"$2/$1.conf"
PATH="$PATH:/usr/sbin"
exec nginx -p "$2" -c "$2/$1.conf" -e stderr
