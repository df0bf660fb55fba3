# The library's packages and pkg-config modules, and what else to link.
BUILD_PACKAGES="libpoco-dev"
RUN_PACKAGES="libpoconetssl100"
MODULES=""
LINKS="-lPocoNetSSL -lPocoCrypto -lPocoNet -lPocoFoundation"
