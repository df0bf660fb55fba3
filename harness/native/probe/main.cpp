// httpmark-probe: framed cases on standard input, framed exchanges on standard output. The frames
// are defined in probe/frames.hpp.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "probe/engine.hpp"
#include "probe/layout.hpp"
#include "shared/endpoint.hpp"
#include "shared/flags.hpp"

namespace {

constexpr const char* kUsage =
    "usage: httpmark-probe --address A --port P | --unix PATH [options]\n"
    "       httpmark-probe --print-layout\n"
    "Plays framed cases from standard input, each on a fresh connection, and writes framed\n"
    "exchanges to standard output, in any order.\n"
    "  --in-flight N      cases at a time that have not gone silent (64)\n"
    "  --in-flight-max N  cases at a time in all (4000, less where descriptors are few)\n"
    "  --tls              speak TLS; the server's certificate is not verified without --ca-file\n"
    "  --ca-file F        verify it against these certificates\n"
    "  --tls-host NAME    the name it has to be for, and SNI\n"
    "  --fresh-ms N       silence after which a case counts against the second only (50)\n"
    "  --print-layout     print the layout of the frames as one JSON object, and end: the numbers\n"
    "                     of steps, kinds, outcomes, ends, events and flags, and the fields of\n"
    "                     each frame and record in their order, with their widths\n";

constexpr std::uint64_t kDescriptorsKept = 16;

}  // namespace

int main(int argc, char** argv) {
    using httpmark::die;
    using httpmark::kExitUsage;
    httpmark::Flags flags(argc, argv);
    if (flags.take_switch("--help")) {
        std::fputs(kUsage, stdout);
        return httpmark::kExitOk;
    }
    if (flags.take_switch("--print-layout")) {
        flags.finish();
        std::printf("%s\n", httpmark::frame_layout_json().c_str());
        return httpmark::kExitOk;
    }
    const std::string address = flags.take_string("--address", "");
    const std::string path = flags.take_string("--unix", "");
    const auto port = static_cast<std::uint16_t>(flags.take_number("--port", 0, 1, 65535));
    httpmark::ProbeOptions options;
    options.in_flight = flags.take_number("--in-flight", 64, 1, 1'000'000);
    options.in_flight_max = flags.take_number("--in-flight-max", 4000, 1, 1'000'000);
    options.fresh_ms =
        static_cast<std::uint32_t>(flags.take_number("--fresh-ms", 50, 0, 3'600'000));
    httpmark::TlsClientOptions tls;
    tls.tell_cut = true;
    const bool speaks_tls = flags.take_switch("--tls");
    tls.ca_file = flags.take_string("--ca-file", "");
    tls.host = flags.take_string("--tls-host", "");
    flags.finish();
    if (!speaks_tls && !(tls.ca_file.empty() && tls.host.empty()))
        die(kExitUsage, "--ca-file and --tls-host go with --tls");
    if (speaks_tls) {
        std::string complaint;
        options.tls = httpmark::TlsContext::client(tls, &complaint);
        if (!options.tls) die(kExitUsage, complaint);
    }

    if (path.empty() == address.empty())
        die(kExitUsage, "give either --address and --port or --unix");
    if (!address.empty() && port == 0) die(kExitUsage, "--port is missing");
    const auto server =
        path.empty() ? httpmark::parse_endpoint(address, port) : httpmark::unix_endpoint(path);
    if (!server) {
        die(kExitUsage, path.empty() ? "--address takes an IP address, not '" + address + "'"
                                     : "--unix takes a path that fits into a socket address");
    }
    options.server = *server;

    const std::uint64_t descriptors = httpmark::raise_descriptor_limit();
    const std::uint64_t usable =
        descriptors > 2 * kDescriptorsKept ? descriptors - kDescriptorsKept : kDescriptorsKept;
    options.in_flight_max = std::min<std::uint64_t>(options.in_flight_max, usable);
    options.in_flight = std::min(options.in_flight, options.in_flight_max);
    signal(SIGPIPE, SIG_IGN);
    httpmark::ProbeEngine engine(options);
    return engine.run();
}
