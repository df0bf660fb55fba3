# The library's packages and pkg-config modules, and what else to link.
BUILD_PACKAGES="libcivetweb-dev"
RUN_PACKAGES="libcivetweb1"
MODULES=""
LINKS="-lcivetweb"
