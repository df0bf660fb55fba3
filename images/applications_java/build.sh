#!/bin/sh
# build.sh SOURCE BUILD: the classes of a server, and the jars that its pom.xml names, into BUILD.
# SOURCE/jars.sha256 says which jars these must be, in the words of sha256sum.
set -eu
export LC_ALL=C
source=$1 build=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$build/jars" "$build/classes"
if [ -e "$source/pom.xml" ]; then
  mvn --batch-mode --quiet --file "$source/pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$build/jars"
  (cd "$build/jars" && sha256sum -- *.jar) >"$build/jars.sha256"
  diff "$source/jars.sha256" "$build/jars.sha256"
fi
javac -Xlint:all,-path -Werror -cp "$build/jars/*" -d "$build/classes" "$here"/*.java "$source"/*.java
