# The library's packages and pkg-config modules, and what else to link.
BUILD_PACKAGES="libmicrohttpd-dev"
RUN_PACKAGES="libmicrohttpd12t64"
MODULES="libmicrohttpd"
LINKS=""
