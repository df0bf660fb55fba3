# The library's packages and pkg-config modules, and what else to link.
BUILD_PACKAGES="libevent-dev libssl-dev"
RUN_PACKAGES="libevent-2.1-7t64 libevent-openssl-2.1-7t64"
MODULES="libevent libevent_openssl openssl"
LINKS=""
