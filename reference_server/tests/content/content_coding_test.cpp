#include "content/content_coding.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using enum ContentCoding;

AcceptEncoding accept(const std::vector<std::string>& lines) {
    AcceptEncoding out;
    for (const std::string& line : lines) out.add(line);
    return out;
}
std::string chosen(const AcceptEncoding& accept, bool is_worth_coding = true) {
    const CodingChoice choice = choose_coding(accept, is_worth_coding);
    return choice.is_acceptable ? std::string(coding_name(choice.coding)) : "406";
}

TEST(ContentCoding, what_accept_encoding_gets) {
    struct Row {
        std::vector<std::string> lines;
        const char* large;  // content that is worth a coding
        const char* small;
    };
    for (const Row& row : {Row{{}, "identity", "identity"},
                           {{""}, "identity", "identity"},
                           {{"gzip"}, "gzip", "identity"},
                           {{"X-GZIP"}, "gzip", "identity"},
                           {{"deflate"}, "deflate", "identity"},
                           {{"deflate, gzip"}, "gzip", "identity"},
                           {{"deflate", "gzip"}, "gzip", "identity"},
                           {{"gzip;q=0.5,deflate"}, "deflate", "identity"},
                           {{"gzip ; Q=0.5 ,\tdeflate;q=0.501"}, "deflate", "identity"},
                           {{"br, zstd"}, "identity", "identity"},
                           {{"br, *;q=0.1"}, "gzip", "identity"},
                           {{"*"}, "gzip", "identity"},
                           {{"gzip;q=0, *"}, "deflate", "identity"},
                           {{"gzip;q=0"}, "identity", "identity"},
                           {{"*;q=0"}, "406", "406"},
                           {{"identity;q=0"}, "406", "406"},
                           {{"identity;q=0, br"}, "406", "406"},
                           {{"identity;q=0, gzip;q=0.001"}, "gzip", "gzip"},
                           {{"*;q=0, deflate;q=0.3"}, "deflate", "deflate"},
                           {{"*;q=0, identity"}, "identity", "identity"},
                           {{"identity;q=0.5, gzip;q=0.4"}, "identity", "identity"},
                           {{"identity, gzip"}, "gzip", "identity"},
                           {{"identity;q=0.001, gzip;q=0.001"}, "gzip", "identity"},
                           {{"gzip, gzip;q=0"}, "identity", "identity"},
                           {{",, gzip ,"}, "gzip", "identity"},
                           // Broken: as if it were not there.
                           {{"gzip identity"}, "identity", "identity"},
                           {{"gzip;q=2"}, "identity", "identity"},
                           {{"gzip;x=1"}, "identity", "identity"},
                           {{"gzip;q=1;x=1"}, "identity", "identity"},
                           {{"gzip;"}, "identity", "identity"},
                           {{"identity;q=0, @"}, "identity", "identity"},
                           {{"gzip", "deflate;q"}, "identity", "identity"}}) {
        std::string shown;
        for (const std::string& line : row.lines) shown += "[" + line + "]";
        LAW(chosen(accept(row.lines)) == row.large, << shown << chosen(accept(row.lines)));
        LAW(chosen(accept(row.lines), false) == row.small, << shown);
    }
}

// The four rules of RFC 9110 12.5.3 for every combination of weights.
TEST(ContentCoding, every_combination_of_weights) {
    const std::vector<std::optional<int>> weights{std::nullopt, 0, 1, 500, 1000};
    const auto text = [](int weight) {
        return weight == 1000 ? std::string("1") : "0." + std::to_string(1000 + weight).substr(1);
    };
    for (const auto& gzip : weights) {
        for (const auto& deflate : weights) {
            for (const auto& identity : weights) {
                for (const auto& star : weights) {
                    std::string field;
                    const auto member = [&](const char* name, std::optional<int> weight) {
                        if (weight) field += std::string(name) + ";q=" + text(*weight) + ",";
                    };
                    member("gzip", gzip);
                    member("deflate", deflate);
                    member("identity", identity);
                    member("*", star);
                    const int of_gzip = gzip ? *gzip : star.value_or(0);
                    const int of_deflate = deflate ? *deflate : star.value_or(0);
                    // Acceptable unless it is excluded; wanted least where nothing is said.
                    const int of_identity = identity ? *identity : star.value_or(1);
                    const AcceptEncoding said = accept({field});
                    LAW(said.weight(kGzip) == static_cast<unsigned>(of_gzip), << field);
                    LAW(said.weight(kDeflate) == static_cast<unsigned>(of_deflate), << field);
                    LAW(said.weight(kIdentity) == static_cast<unsigned>(of_identity), << field);
                    const CodingChoice choice = choose_coding(said, true);
                    const int best = std::max({of_gzip, of_deflate, of_identity});
                    LAW(choice.is_acceptable == (best > 0), << field);
                    const int of_chosen = choice.coding == kGzip      ? of_gzip
                                          : choice.coding == kDeflate ? of_deflate
                                                                      : of_identity;
                    LAW(of_chosen == best, << field);
                    LAW(choose_coding(said, false).is_acceptable == choice.is_acceptable);
                }
            }
        }
    }
}

TEST(ContentCoding, every_weight_of_up_to_six_octets) {
    constexpr std::string_view kOctets = "019. x";
    std::string text;
    const auto each = [&](const auto& self, unsigned left) -> void {
        // ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), and OWS at the end of the member
        std::string bare = text;
        while (!bare.empty() && bare.back() == ' ') bare.pop_back();
        bool good = !bare.empty() && bare.size() <= 5 && (bare[0] == '0' || bare[0] == '1');
        for (std::size_t i = 1; i < bare.size(); ++i) {
            good = good && (i == 1 ? bare[i] == '.'
                                   : bare[i] == '0' ||
                                         (bare[0] == '0' && bare[i] >= '0' && bare[i] <= '9'));
        }
        // What is broken does not exclude identity.
        const AcceptEncoding said = accept({"identity;q=0, *;q=0, gzip;q=" + text});
        LAW((said.weight(kIdentity) == 0) == good, << text);
        if (good) {
            const double weight = std::stod(bare) * 1000;
            LAW(said.weight(kGzip) == static_cast<unsigned>(weight + 0.5), << text);
        }
        if (left == 0) return;
        for (const char c : kOctets) {
            text += c;
            self(self, left - 1);
            text.pop_back();
        }
    };
    each(each, 6);
}

TEST(ContentCoding, what_is_worth_it) {
    const MediaType html = parse_media_type("text/html").media_type;
    const MediaType png = parse_media_type("image/png").media_type;
    LAW(!is_worth_coding(kCodedContentMin - 1, html) && is_worth_coding(kCodedContentMin, html));
    LAW(!is_worth_coding(1 << 20, png) && !is_worth_coding(1 << 20, MediaType{}));
    LAW(kVaryByCoding.name == "Vary" && kVaryByCoding.value == "Accept-Encoding");
}

TEST(ContentCoding, of_a_request) {
    struct Row {
        const char* value;
        ContentCoding coding;
        Reason fault;
    };
    for (const Row& row : {Row{"", kIdentity, Reason::kNone},
                           {"gzip", kGzip, Reason::kNone},
                           {" ,X-Gzip\t,", kGzip, Reason::kNone},
                           {"Deflate", kDeflate, Reason::kNone},
                           {"identity, identity", kIdentity, Reason::kNone},
                           {"identity, gzip", kGzip, Reason::kNone},
                           {"gzip, gzip", kGzip, Reason::kCodingUnknown},
                           {"gzip, deflate", kGzip, Reason::kCodingUnknown},
                           {"br", kIdentity, Reason::kCodingUnknown},
                           {"br, gz ip", kIdentity, Reason::kCodingSyntax},
                           {"gzip;q=1", kIdentity, Reason::kCodingSyntax},
                           {"\"gzip\"", kIdentity, Reason::kCodingSyntax}}) {
        const CodingResult result = request_coding(row.value);
        LAW(result.fault == row.fault, << row.value);
        LAW(row.fault != Reason::kNone || result.coding == row.coding, << row.value);
        // The same in two lines as in one.
        const std::string_view text = row.value;
        const std::size_t comma = text.find(',');
        if (comma == std::string_view::npos) continue;
        const CodingResult lines =
            request_coding(text.substr(comma + 1), request_coding(text.substr(0, comma)));
        LAW(lines.fault == result.fault, << row.value);
    }
}

struct Decoded {
    std::string content;
    Reason fault = Reason::kNone;
    std::uint64_t decoded_size = 0;
    std::size_t taken = 0;
    bool operator==(const Decoded& other) const {  // how much was read ahead may differ
        return content == other.content && fault == other.fault &&
               decoded_size == other.decoded_size;
    }
};

Decoded decode(std::string_view coded, ContentCoding coding, std::size_t step,
               std::uint64_t max = 1 << 24, std::size_t room_size = 1 << 16) {
    static GuardPage guard;
    ContentDecoder decoder(coding, max);
    Decoded out;
    std::string room(room_size, '#');
    ContentDecoder::Status status = ContentDecoder::Status::kNeedMore;
    for (std::size_t at = 0; at < coded.size() && status != ContentDecoder::Status::kRejected;
         at += step) {
        const std::string_view part = coded.substr(at, step);
        std::string_view input(guard.place(part), part.size());
        do {
            std::span<char> left(room);
            status = decoder.decode(input, left);
            out.content.append(room, 0, room.size() - left.size());
            LAW(status != ContentDecoder::Status::kOutputFull || left.empty());
            LAW(status != ContentDecoder::Status::kNeedMore || input.empty());
        } while (status == ContentDecoder::Status::kOutputFull);
        out.taken += part.size() - input.size();
    }
    status = decoder.finish();
    out.fault = decoder.fault();
    if (out.fault != Reason::kNone) {  // what is refused stays so
        std::string_view input = coded;
        std::span<char> left(room);
        LAW(decoder.decode(input, left) == ContentDecoder::Status::kRejected &&
            input.size() == coded.size() && left.size() == room.size());
        LAW(decoder.fault() == out.fault);
    }
    LAW((status == ContentDecoder::Status::kDone) == (out.fault == Reason::kNone));
    out.decoded_size = decoder.decoded_size();
    LAW(out.decoded_size == out.content.size() && out.content.size() <= max);
    return out;
}

std::string encode(std::string_view content, ContentCoding coding, std::size_t step,
                   std::size_t room_size, ContentEncoder::Then then = ContentEncoder::Then::kMore) {
    ContentEncoder encoder(coding);
    std::string out;
    std::string room(room_size, '#');
    std::size_t at = 0;
    ContentEncoder::Status status = ContentEncoder::Status::kNeedMore;
    while (status != ContentEncoder::Status::kDone) {
        std::string_view input = content.substr(at, step);
        at += input.size();
        const bool is_last = at == content.size();
        do {
            std::span<char> left(room);
            status = encoder.encode(input, left, is_last ? ContentEncoder::Then::kEnd : then);
            out.append(room, 0, room.size() - left.size());
        } while (status == ContentEncoder::Status::kOutputFull);
        LAW(status ==
            (is_last ? ContentEncoder::Status::kDone : ContentEncoder::Status::kNeedMore));
        if (status == ContentEncoder::Status::kFailed) break;
    }
    return out;
}

std::string sample(std::size_t size, unsigned seed) {
    Random random(seed);
    std::string out;
    while (out.size() < size) {
        out += random() % 3 == 0 ? std::string(1, static_cast<char>(random())) : "some text ";
    }
    return out.substr(0, size);
}

TEST(ContentCoding, what_is_encoded_decodes_to_the_same_in_every_split) {
    for (const ContentCoding coding : {kGzip, kDeflate}) {
        for (const std::size_t size : {0U, 1U, 2U, 100U, 1024U, 5000U, 70000U}) {
            const std::string content = sample(size, 3);
            const std::string coded = encode(content, coding, 1000, 500);
            LAW(encode(content, coding, size + 1, 1 << 17) == coded, << size);
            const Decoded whole = decode(coded, coding, coded.size());
            LAW(whole.content == content && whole.fault == Reason::kNone, << size);
            for (const std::size_t step : {1U, 2U, 7U, 100U}) {
                for (const std::size_t room : {1U, 3U, 1000U}) {
                    if (size > 5000 && (step < 7 || room < 1000)) continue;
                    LAW(decode(coded, coding, step, 1 << 24, room) == whole, << size);
                }
            }
            if (size > 100) continue;
            LAW(encode(content, coding, 1, 1) == coded, << size);
            for (std::size_t cut = 1; cut < coded.size(); ++cut) {
                LAW(decode(coded, coding, cut) == whole, << cut);
                const Decoded part = decode(std::string_view(coded).substr(0, cut), coding, 1000);
                LAW(part.fault == Reason::kCodedUnfinished && content.starts_with(part.content),
                    << cut);
            }
        }
        LAW(decode("", coding, 1).fault == Reason::kCodedUnfinished);
    }
}

TEST(ContentCoding, what_was_flushed_can_be_decoded) {
    for (const ContentCoding coding : {kGzip, kDeflate}) {
        ContentEncoder encoder(coding);
        ContentDecoder decoder(coding, 1 << 20);
        for (unsigned round = 0; round < 3; ++round) {
            for (unsigned i = 0; i < 20; ++i) {
                const std::string event = "data: " + std::to_string(i) + "\n\n";
                std::string_view input = event;
                std::string coded(1000, '#');
                std::span<char> room(coded);
                LAW(encoder.encode(input, room, ContentEncoder::Then::kFlush) ==
                    ContentEncoder::Status::kNeedMore);
                std::string_view sent(coded.data(), coded.size() - room.size());
                std::string plain(1000, '#');
                std::span<char> plain_room(plain);
                LAW(decoder.decode(sent, plain_room) == ContentDecoder::Status::kNeedMore);
                LAW(plain.substr(0, plain.size() - plain_room.size()) == event, << i);
            }
            std::string coded(1000, '#');
            std::span<char> room(coded);
            std::string_view nothing;
            LAW(encoder.encode(nothing, room, ContentEncoder::Then::kEnd) ==
                ContentEncoder::Status::kDone);
            std::string_view surplus = "x";
            LAW(encoder.encode(surplus, room, ContentEncoder::Then::kEnd) ==
                ContentEncoder::Status::kFailed);
            encoder.restart();
            decoder = ContentDecoder(coding, 1 << 20);
        }
    }
}

// Streams made by hand of stored blocks (RFC 1951 3.2.4), with check values as RFC 1950 and 1952
// define them: nothing of zlib has touched them.
std::string little(std::uint32_t value, unsigned size) {
    std::string out;
    for (unsigned i = 0; i < size; ++i) out += static_cast<char>(value >> 8 * i);
    return out;
}
std::string stored(std::string_view content) {
    std::string out;
    do {
        const std::string_view block = content.substr(0, 60000);
        content.remove_prefix(block.size());
        const auto size = static_cast<std::uint32_t>(block.size());
        out += little(content.empty() ? 1 : 0, 1) + little(size, 2) + little(~size, 2);
        out += block;
    } while (!content.empty());
    return out;
}
std::uint32_t crc(std::string_view content) {
    std::uint32_t value = ~0U;
    for (const char c : content) {
        value ^= static_cast<unsigned char>(c);
        for (unsigned i = 0; i < 8; ++i) value = value >> 1 ^ ((value & 1) != 0 ? 0xEDB88320U : 0U);
    }
    return ~value;
}
std::uint32_t adler(std::string_view content) {
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    for (const char c : content) {
        a = (a + static_cast<unsigned char>(c)) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}
std::string gzip_by_hand(std::string_view content) {
    return std::string("\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\xFF", 10) + stored(content) +
           little(crc(content), 4) + little(static_cast<std::uint32_t>(content.size()), 4);
}
std::string deflate_by_hand(std::string_view content) {
    const std::string big = little(adler(content), 4);
    return "\x78\x01" + stored(content) + std::string(big.rbegin(), big.rend());
}

TEST(ContentCoding, streams_made_by_hand) {
    for (const std::size_t size : {0U, 1U, 300U, 60000U, 130000U}) {
        const std::string content = sample(size, 9);
        LAW(decode(gzip_by_hand(content), kGzip, 1000).content == content, << size);
        LAW(decode(deflate_by_hand(content), kDeflate, 1000).content == content, << size);
        LAW(decode(gzip_by_hand(content), kGzip, 1000).fault == Reason::kNone);
        LAW(decode(deflate_by_hand(content), kDeflate, 1000).fault == Reason::kNone);
    }
    // What zlib makes ends in the same check values.
    const std::string content = sample(3000, 9);
    LAW(encode(content, kGzip, 9999, 9999).ends_with(little(crc(content), 4) + little(3000, 4)));
    LAW(encode(content, kGzip, 9999, 9999).starts_with("\x1F\x8B\x08"));
    const std::string big = little(adler(content), 4);
    LAW(encode(content, kDeflate, 9999, 9999).ends_with(std::string(big.rbegin(), big.rend())));
}

TEST(ContentCoding, what_is_broken_is_refused) {
    const std::string gzip = gzip_by_hand("hello");
    const std::string deflate = deflate_by_hand("hello");
    struct Row {
        std::string coded;
        ContentCoding coding;
        Reason fault;
        const char* content;
    };
    using enum Reason;
    for (const Row& row :
         {Row{gzip + gzip, kGzip, kNone, "hellohello"},  // members follow each other (RFC 1952 2.2)
          Row{gzip + gzip_by_hand("") + gzip, kGzip, kNone, "hellohello"},
          Row{gzip + "x", kGzip, kCodedUnfinished, "hello"},
          Row{gzip + "xyz", kGzip, kCodedFormat, "hello"},
          Row{gzip + std::string(3, '\0'), kGzip, kCodedFormat, "hello"},
          Row{gzip + gzip.substr(0, 10), kGzip, kCodedUnfinished, "hello"},
          Row{deflate + "x", kDeflate, kCodedTrailing, "hello"},
          Row{deflate + deflate, kDeflate, kCodedTrailing, "hello"},
          Row{gzip, kDeflate, kCodedFormat, ""}, Row{deflate, kGzip, kCodedFormat, ""},
          Row{stored("hello"), kDeflate, kCodedFormat, ""},  // without the wrapper of RFC 1950
          Row{"hello", kGzip, kCodedFormat, ""}}) {
        const Decoded whole = decode(row.coded, row.coding, 1000);
        LAW(whole.fault == row.fault && whole.content == row.content,
            << visible(row.coded) << error_row(whole.fault).name);
        for (std::size_t step = 1; step < row.coded.size(); ++step) {
            LAW(decode(row.coded, row.coding, step) == whole, << visible(row.coded) << step);
        }
    }
    // One bit that differs is found, but for flags and times of the header, and for those that a
    // stored block begins with and that mean nothing.
    for (std::size_t bit = 0; bit < gzip.size() * 8; ++bit) {
        std::string broken = gzip;
        broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ 1 << bit % 8);
        const bool is_free = (bit >= 24 && bit < 80) || (bit >= 83 && bit < 88);
        const Decoded out = decode(broken, kGzip, 1);
        LAW(out.fault != kNone || (is_free && out.content == "hello"), << bit);
    }
}

TEST(ContentCoding, the_limit_on_decoded_content_is_exact) {
    const std::string content = sample(1000, 4);
    for (const ContentCoding coding : {kGzip, kDeflate}) {
        const std::string coded = encode(content, coding, 1000, 2000);
        for (const std::uint64_t max : {0U, 1U, 500U, 999U, 1000U, 1001U}) {
            for (const std::size_t step : {1U, 10U, 2000U}) {
                for (const std::size_t room : {1U, 999U, 2000U}) {
                    const Decoded out = decode(coded, coding, step, max, room);
                    LAW(out.fault == (max < 1000 ? Reason::kDecodedTooLarge : Reason::kNone),
                        << max);
                    LAW(out.content == content.substr(0, max), << max);
                }
            }
        }
        LAW(decode(encode("", coding, 1, 100), coding, 1, 0).fault == Reason::kNone);
        // A bomb is refused before most of it has been looked at.
        const std::string bomb = encode(std::string(20000000, '\0'), coding, 1 << 20, 1 << 16);
        const Decoded out = decode(bomb, coding, 100, 10000);
        LAW(bomb.size() > 15000 && out.fault == Reason::kDecodedTooLarge &&
                out.content.size() == 10000 && out.taken <= 200,
            << bomb.size() << " " << out.taken);
    }
}

}  // namespace
}  // namespace httpmark
