# The library's packages and pkg-config modules, and what else to link.
BUILD_PACKAGES="libsoup-3.0-dev"
RUN_PACKAGES="libsoup-3.0-0 glib-networking"
MODULES="libsoup-3.0"
LINKS=""
