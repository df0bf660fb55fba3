#!/bin/sh
# build.sh FOLDER PROGRAM: compile FOLDER/server.cpp with the library that FOLDER/library.sh names.
set -e
. "$1/library.sh"
# shellcheck disable=SC2046,SC2086
c++ -std=c++20 -O2 -DNDEBUG -pthread -Wall -Wextra -I "$(dirname "$0")" "$1/server.cpp" -o "$2" \
  ${MODULES:+$(pkg-config --cflags --libs $MODULES)} $LINKS
