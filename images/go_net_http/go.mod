module httpmark/go_net_http

go 1.26.0

toolchain go1.26.8
