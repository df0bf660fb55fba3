// Whatever the fields of a handshake hold, it is accepted with an answer that is framed as one, or
// refused with a reason.
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "http/response.hpp"
#include "websocket/handshake.hpp"

namespace {

using namespace httpmark;
using namespace httpmark::websocket;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 1) return 0;
    const std::string request(reinterpret_cast<const char*>(octets + 1), size - 1);
    HeadParser parser;
    const ParseResult result =
        parser.parse(request.data(), request.size(), Limits{}, Strictness::kStrict, kScalarKernel);
    if (result.verdict != Verdict::kAccepted) return 0;
    const RequestHead& head = parser.head();
    static const std::string kSubprotocols[] = {"chat", "a"};
    HandshakeSettings settings{kSubprotocols, {}};
    settings.deflate.enabled = (octets[0] & 1) != 0;
    if ((octets[0] & 2) != 0) settings.deflate.wanted = {true, true, 10, 9};
    const Handshake handshake = judge_handshake(
        head,
        std::string_view(request).substr(head.fields_begin, result.offset - head.fields_begin),
        settings);
    if (handshake.refusal != Refusal::kNone) {
        CHECK(refusal_row(handshake.refusal).status >= 400);
        return 0;
    }
    CHECK(head.method == Method::kGet && head.is_http_1_1() && head.content_length == 0);
    const std::vector<Field> fields = handshake_fields(handshake);
    CHECK(fields.size() ==
          1U + (handshake.subprotocol.empty() ? 0 : 1) + (handshake.extensions.empty() ? 0 : 1));
    for (const Field& field : fields) CHECK(field_is_safe(field));
    CHECK(handshake.subprotocol.empty() || handshake.subprotocol == "chat" ||
          handshake.subprotocol == "a");
    if (handshake.deflate) {
        CHECK(settings.deflate.enabled);
        const DeflateParameters& agreed = *handshake.deflate;
        CHECK(agreed.server_max_window_bits >= 8 &&
              agreed.server_max_window_bits <= settings.deflate.wanted.server_max_window_bits);
        CHECK(agreed.client_max_window_bits >= 8 && agreed.client_max_window_bits <= 15);
    }
    return 0;
}
