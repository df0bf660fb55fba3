// HeadParser::parse() over one kind of Block: the mask algebra, once for all kernels. Each kernel's
// source includes it and compiles it for its own instructions, so nothing in here may call an
// inline function that other sources share: the linker keeps one copy of such a function, and it
// might be the one this machine cannot run.
//
// A Block is 64 bytes. It is made from a pointer to 64, or to fewer and their number, in which
// case nothing after them is read and NUL stands there; and gives the masks of scan.hpp by name.
#pragma once

#include "http/parser.hpp"
#include "scan/words.hpp"

namespace httpmark {

namespace {

// The first letter of the one field name of each length that take_field() knows; no name begins
// with NUL. Lengths are folded into the table, so that a hit is a suspicion only.
constexpr std::uint64_t kLengthsKnown = 32;
struct KnownNames {
    unsigned char first[kLengthsKnown];
};
constexpr KnownNames kKnownNames = [] {
    KnownNames known{};
    known.first[4] = 'h';   // host
    known.first[6] = 'e';   // expect
    known.first[7] = 'u';   // upgrade
    known.first[10] = 'c';  // connection
    known.first[14] = 'c';  // content-length
    known.first[17] = 't';  // transfer-encoding
    return known;
}();

// Of the bytes after a block, those that the last '%' in it want to be HEXDIG.
[[gnu::always_inline]] inline std::uint8_t carry_of(std::uint64_t percent) {
    const std::uint64_t last_two = percent >> (kBlockSize - 2);
    return static_cast<std::uint8_t>(last_two == 0 ? 0 : last_two | 1);
}

[[gnu::always_inline]] inline bool may_be_known(const char* name, std::uint64_t size) {
    return kKnownNames.first[size % kLengthsKnown] == (static_cast<unsigned char>(name[0]) | 0x20U);
}

template <class Block>
[[gnu::always_inline]] inline Block block_at(const char* data, std::size_t left, unsigned& n) {
    if (left >= kBlockSize) [[likely]] {
        n = kBlockSize;
        return Block(data);
    }
    n = static_cast<unsigned>(left);
    return Block(data, n);
}

template <class Block>
[[gnu::always_inline]] inline BlockMasks all_masks(const Block& block) {
    return {block.token(),     block.plain_target() | block.percent(),
            block.hex(),       block.host(),
            block.forbidden(), block.colon(),
            block.cr(),        block.lf(),
            block.percent()};
}

// For the kernels that cannot load a part of a block.
struct CopiedBlock {
    alignas(kBlockSize) char octets[kBlockSize];
    [[gnu::always_inline]] CopiedBlock(const char* data, unsigned size) : octets{} {
        __builtin_memcpy(octets, data, size);
    }
};

}  // namespace

// What one block says of field lines.
struct HeadParser::BlockLines {
    std::uint64_t fault;    // not 0 when a byte is wrong
    std::uint64_t ends;     // the CR of each line
    std::uint64_t colons;   // the end of each name
    std::uint64_t end_cr;   // its lowest bit is the CR that ends the section
    std::uint64_t in_name;  // 1 when a name goes on after the block

    // Of the block only what stands from `from` on and before `n` belongs to them; `before` is the
    // byte in front of the block, and in_name 1 when a name goes on in it.
    template <class Block>
    [[gnu::always_inline]] BlockLines(const Block& block, char before, std::uint64_t name_goes_on,
                                      unsigned from, unsigned n) {
        const std::uint64_t range = bits_from(from) & bits_below(n);
        const std::uint64_t cr = block.cr();
        const std::uint64_t lf = block.lf();
        const std::uint64_t all_starts = behind(lf, before, '\n') & range;
        // A CR at a line start ends the section; what stands after it belongs to others.
        end_cr = cr & all_starts;
        const std::uint64_t inside = range & ~end_cr & (end_cr - 1);  // before its lowest bit
        const std::uint64_t starts = all_starts & inside;
        const std::uint64_t token = block.token() & inside;
        ends = cr & inside;
        // A carry sent into each name comes out at its first byte that is no tchar: the colon, or
        // else fold, space before the colon, a bad byte, a missing colon.
        std::uint64_t sum = 0;
        in_name = __builtin_add_overflow(token, starts | name_goes_on, &sum) ? 1 : 0;
        colons = sum & ~token & inside;
        // Every CR is followed by LF and every LF follows a CR; a name has a byte.
        fault = ((behind(cr, before, '\r') ^ lf) | (starts & ~token) | (colons & ~block.colon()) |
                 block.forbidden()) &
                inside;
    }

  private:
    [[gnu::always_inline]] static std::uint64_t behind(std::uint64_t mask, char before, char c) {
        return mask << 1 | (before == c ? 1 : 0);
    }
};

// Where the lines stand at the start of a block; offsets count from there.
struct HeadParser::Cursor {
    std::int64_t line_start;
    std::int64_t colon;  // of the line under way; 0 when it has none yet
    std::uint32_t count;

    Cursor(const LineState& lines, std::uint32_t base)
        : line_start(std::int64_t{lines.line_start} - base),
          colon(lines.colon == 0 ? 0 : std::int64_t{lines.colon} - base),
          count(lines.count) {}
    LineState state(std::uint32_t base) const {
        return {base + static_cast<std::uint32_t>(line_start),
                colon == 0 ? 0 : base + static_cast<std::uint32_t>(colon), count, false};
    }
    std::uint64_t in_name(char before) const {
        return before != '\n' && before != '\r' && colon == 0 ? 1 : 0;
    }
};

// No bound is passed by what starts and ends in one block.
[[gnu::always_inline]] inline bool HeadParser::is_roomy(const Limits& limits) {
    return limits.field_name_max >= kBlockSize && limits.field_value_max >= kBlockSize &&
           limits.head_max >= kBlockSize;
}
// Where the last block may start that the line under way at `base` could fill without passing a
// bound; what starts in a block and ends in it or goes on is shorter.
[[gnu::always_inline]] inline std::int64_t HeadParser::last_block(const Limits& limits,
                                                                  std::uint32_t base,
                                                                  const Cursor& cursor) {
    return (cursor.colon == 0 ? cursor.line_start + static_cast<std::int64_t>(limits.field_name_max)
                              : cursor.colon + static_cast<std::int64_t>(limits.field_value_max)) +
           base - kBlockSize;
}

// Lines whose fields may be known. They are looked at after the loops over blocks and lines, which
// keep their constants in registers as long as they call nobody.
struct HeadParser::Suspects {
    struct Line {
        std::uint32_t start;
        std::uint32_t colon;
        std::uint32_t end;
    };
    static constexpr unsigned kOfBlock = kBlockSize / 4;  // no line is shorter than a: CR LF
    Line lines[3 * kOfBlock];
    unsigned size = 0;

    [[gnu::always_inline]] bool has_room() const { return size <= kOfBlock; }  // for two blocks
    [[gnu::always_inline]] void add(std::uint32_t start, std::uint32_t colon, std::uint32_t end) {
        lines[size++] = {start, colon, end};
    }
    [[gnu::always_inline]] void take(HeadParser& parser, const char* data) {
        for (unsigned i = 0; i < size; ++i) {
            parser.take_field(data, lines[i].start, lines[i].colon, lines[i].end);
        }
        size = 0;
    }
};

// A Host line that lies in the block, name and all: uri-host as a plain name or IPv4 address, with
// or without a port. False when it is anything else, or wrong.
template <class Block>
[[gnu::always_inline]] inline bool HeadParser::take_host_by_masks(const Block& block,
                                                                  const char* octets,
                                                                  std::uint32_t base,
                                                                  unsigned colon, unsigned cr) {
    const unsigned begin = colon + 1 + (octets[colon + 1] == ' ' ? 1U : 0U);
    // At the line's CR at the latest.
    const auto stop = static_cast<unsigned>(first_of(~block.host() & bits_from(begin)));
    if (stop == begin) return false;
    if (stop != cr) {
        const unsigned digits = cr - stop - 1;
        if (octets[stop] != ':' || digits > 5) return false;
        if (digits != 0) {
            // There are eight bytes before any CR of a field line. The digits are the last of
            // them, taken as one number in which the first byte weighs most: as long as a port is
            // five of them it compares as the port does.
            constexpr std::uint64_t kZeros = 0x3030303030303030;
            constexpr std::uint64_t kHighestPort = 0x3635353335;  // "65535"
            auto word = load_word<std::uint64_t>(octets + cr - 8);
            if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) word = __builtin_bswap64(word);
            word &= bits_below(8 * digits);
            if (word > kHighestPort) return false;
            word ^= kZeros & bits_below(8 * digits);
            if (((word | (word + 0x0606060606060606)) & 0xF0F0F0F0F0F0F0F0) != 0) return false;
        }
    }
    if ((head_.flags & kHostSeen) != 0) head_.flags |= kHostSeenTwice;
    head_.flags |= kHostSeen;
    take_authority({base + begin, cr - begin});
    return true;
}

// The lines that end in the block at `base`, in lock step over colons and CRs; and on to the block
// after it.
template <class Block>
[[gnu::always_inline]] inline void HeadParser::take_lines(const Block& block, const char* data,
                                                          std::uint32_t base,
                                                          const BlockLines& lines, Cursor& cursor,
                                                          Suspects& suspects) {
    const char* const octets = data + base;
    std::uint64_t colons = lines.colons;
    std::int64_t start = cursor.line_start;
    std::int64_t colon = cursor.colon;
    if (colon == 0) {
        colon = static_cast<std::int64_t>(first_or_64(colons));
        colons &= colons - 1;
    }
    for (std::uint64_t ends = lines.ends; ends != 0; ends &= ends - 1) {
        const auto end = static_cast<std::int64_t>(first_of(ends));
        const char* const name = octets + start;
        if (may_be_known(name, static_cast<std::uint64_t>(colon - start))) {
            if (colon - start != 4 || start < 0 ||
                (load_word<std::uint32_t>(name) | word_of<std::uint32_t>("    ")) !=
                    word_of<std::uint32_t>("host") ||
                !take_host_by_masks(block, octets, base, static_cast<unsigned>(colon),
                                    static_cast<unsigned>(end))) {
                suspects.add(base + static_cast<std::uint32_t>(start),
                             base + static_cast<std::uint32_t>(colon),
                             base + static_cast<std::uint32_t>(end));
            }
        }
        start = end + 2;
        colon = static_cast<std::int64_t>(first_or_64(colons));
        colons &= colons - 1;
    }
    cursor.line_start = start - kBlockSize;
    cursor.colon = colon - kBlockSize;
}

// The rest of a target in origin-form, from scan_ on, and HTTP/1.1 after it. False, and the parser
// stands somewhere before, where there is anything else or not all of it.
template <class Block>
[[gnu::noinline]] bool HeadParser::long_target(const char* data, std::size_t size,
                                               const Limits& limits) {
    for (; size - scan_ >= kBlockSize; scan_ += kBlockSize) {
        const Block block(data + scan_);
        const std::uint64_t percent = block.percent();
        const std::uint64_t stop = ~(block.plain_target() | percent);
        const std::uint64_t pairs = percent & ~stop & (stop - 1);
        const std::uint64_t digits = pairs << 1 | pairs << 2 | percent_carry_;
        const std::uint32_t end = scan_ + static_cast<std::uint32_t>(first_or_64(stop));
        if ((digits & ~block.hex()) != 0 || end - mark_ > limits.target_max) return false;
        if (stop == 0) {
            percent_carry_ = carry_of(pairs);
            continue;
        }
        if (size - end < 11 ||
            load_word<std::uint64_t>(data + end) != word_of<std::uint64_t>(" HTTP/1.") ||
            load_word<std::uint32_t>(data + end + 7) != word_of<std::uint32_t>(".1\r\n")) {
            return false;
        }
        head_.target = {mark_, end - mark_};
        percent_carry_ = 0;
        begin_fields(end + 11);
        return true;
    }
    return false;
}

// A common request-line that ends in the first block.
struct HeadParser::FirstLine {
    Method method;
    unsigned method_size;
    unsigned target;
    unsigned target_end;
};

// The field lines of the first block, after its request-line. As first_block() says.
template <class Block>
[[gnu::always_inline]] inline std::uint32_t HeadParser::first_fields(const Block& block,
                                                                     const char* data,
                                                                     std::size_t size,
                                                                     const Limits& limits,
                                                                     const FirstLine& line) {
    const unsigned at = line.target_end + 11;
    // Behind the last byte there is NUL, which is at fault unless the head ends before.
    const BlockLines lines(block, '\0', 0, at, kBlockSize);
    const auto count = static_cast<std::uint32_t>(__builtin_popcountll(lines.ends));
    // Its lowest bit, if LF is after it.
    std::uint64_t whole_end = lines.end_cr & -lines.end_cr & (block.lf() >> 1);
    if (lines.fault != 0 || count >= limits.field_lines_max) return 0;
    if (whole_end == 0 && lines.end_cr != 0) {
        // The LF may be the first byte behind the block.
        if (lines.end_cr != kOne << (kBlockSize - 1) || size == kBlockSize ||
            limits.head_max == kBlockSize || data[kBlockSize] != '\n') {
            return 0;
        }
        whole_end = lines.end_cr;
    }
    head_.method_name = {0, line.method_size};
    head_.method = line.method;
    head_.target = {line.target, line.target_end - line.target};
    begin_fields(at);
    Cursor cursor({at, 0, count, false}, 0);
    Suspects suspects;
    take_lines(block, data, 0, lines, cursor, suspects);
    suspects.take(*this, data);
    if (whole_end != 0) {
        head_.field_count = count;
        return static_cast<std::uint32_t>(first_of(whole_end)) + 2;
    }
    scan_ = kBlockSize;
    lines_ = cursor.state(kBlockSize);
    return whole_blocks<Block>(data, size, limits);
}

// The common request-line, origin-form and HTTP/1.1, and as much of the rest as stands in the first
// block. The length of the head when that is all of it; otherwise 0, and rest() goes on from
// wherever this has come.
template <class Block>
[[gnu::always_inline]] inline std::uint32_t HeadParser::first_block(const char* data,
                                                                    std::size_t size,
                                                                    const Limits& limits) {
    if (size < 16) return 0;  // no request-line is shorter
    unsigned n = 0;
    const Block block = block_at<Block>(data, size, n);
    unsigned method_size = 3;
    Method method = Method::kGet;
    if ((load_word<std::uint64_t>(data) & word_of<std::uint64_t>("\xFF\xFF\xFF\xFF\xFF\0\0\0")) !=
        word_of<std::uint64_t>("GET /\0\0\0")) {
        method_size = static_cast<unsigned>(first_or_64(~block.token()));
        if (method_size == 0 || method_size > limits.method_max || method_size + 2 > n ||
            data[method_size] != ' ' || data[method_size + 1] != '/') {
            return 0;
        }
        method =
            method_size > 7 ? Method::kUnknown : method_of_word(first_octets(data, method_size));
        if (method == Method::kConnect) return 0;
    }
    const unsigned begin = method_size + 1;
    std::uint64_t stop = ~block.plain_target() & bits_from(begin);
    auto end = static_cast<unsigned>(first_or_64(stop));
    std::uint64_t pairs = 0;
    if (end < n && data[end] == '%') {
        const std::uint64_t percent = block.percent();
        stop &= ~percent;
        end = static_cast<unsigned>(first_or_64(stop));
        pairs = percent & bits_from(begin) & bits_below(end);
        // The byte after the target is no HEXDIG: a pair cut short there is found, too.
        if ((((pairs << 1) | (pairs << 2)) & ~block.hex()) != 0) return 0;
    }
    if (end - begin > limits.target_max) return 0;
    if (end == kBlockSize) {
        head_.method_name = {0, method_size};
        head_.method = method;
        mark_ = begin;
        phase_ = Phase::kTargetOrigin;
        scan_ = kBlockSize;
        percent_carry_ = carry_of(pairs);
        return long_target<Block>(data, size, limits) ? whole_blocks<Block>(data, size, limits) : 0;
    }
    const unsigned at = end + 11;
    if (at > size) return 0;
    if (load_word<std::uint64_t>(data + end) != word_of<std::uint64_t>(" HTTP/1.") ||
        load_word<std::uint32_t>(data + at - 4) != word_of<std::uint32_t>(".1\r\n")) {
        return 0;
    }
    if (at >= kBlockSize) {
        head_.method_name = {0, method_size};
        head_.method = method;
        head_.target = {begin, end - begin};
        begin_fields(at);
        return whole_blocks<Block>(data, size, limits);
    }
    return first_fields(block, data, size, limits, {method, method_size, begin, end});
}

// As many blocks as are all there, and have nothing in them that wants a closer look, from scan_
// on. The length of the head when they end it; otherwise 0, and rest() goes on after them.
template <class Block>
[[gnu::noinline]] std::uint32_t HeadParser::whole_blocks(const char* data, std::size_t size,
                                                         const Limits& limits) {
    std::uint32_t base = scan_;
    Cursor cursor(lines_, base);
    std::uint64_t in_name = cursor.in_name(data[base - 1]);
    const auto minimum = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
    const std::int64_t last_of_all =
        minimum(static_cast<std::int64_t>(size), static_cast<std::int64_t>(limits.head_max)) -
        kBlockSize;
    const auto line_max = static_cast<std::int64_t>(limits.field_name_max < limits.field_value_max
                                                        ? limits.field_name_max
                                                        : limits.field_value_max);
    std::int64_t last = minimum(last_of_all, last_block(limits, base, cursor));
    std::uint32_t length = 0;
    Suspects suspects;
    while (base <= last) {
        const Block block(data + base);
        const BlockLines lines(block, data[base - 1], in_name, 0, kBlockSize);
        if (lines.fault != 0) break;
        const auto count =
            cursor.count + static_cast<std::uint32_t>(__builtin_popcountll(lines.ends));
        if (lines.end_cr != 0) {
            const std::uint32_t end = base + static_cast<std::uint32_t>(first_of(lines.end_cr));
            if (count > limits.field_lines_max || end + 2 > last_of_all + kBlockSize ||
                data[end + 1] != '\n') {
                break;
            }
            head_.field_count = count;
            take_lines(block, data, base, lines, cursor, suspects);
            length = end + 2;
            break;
        }
        if (lines.ends != 0) {
            if (count >= limits.field_lines_max || !suspects.has_room()) break;
            cursor.count = count;
        }
        take_lines(block, data, base, lines, cursor, suspects);
        in_name = lines.in_name;
        base += kBlockSize;
        if (lines.ends != 0)
            last = minimum(last_of_all, base + cursor.line_start + line_max - kBlockSize);
    }
    suspects.take(*this, data);
    scan_ = base;
    lines_ = cursor.state(base);
    return length;
}

// One block of field lines, or what there is of it, whatever it holds. True when that is the end of
// it; otherwise the parser has gone on.
template <class Block>
[[gnu::noinline]] bool HeadParser::any_block(const Context& context, std::size_t size,
                                             ParseResult& result) {
    const char* const data = context.data;
    const std::uint32_t base = scan_;
    unsigned n = 0;
    const Block block = block_at<Block>(data + base, size - base, n);
    Cursor cursor(lines_, base);
    const char before = data[base - 1];
    const BlockLines lines(block, before, cursor.in_name(before), 0, n);
    const auto end = static_cast<unsigned>(first_or_64(lines.end_cr));
    const bool bare_cr = end + 1 < n && data[base + end + 1] != '\n';
    if (lines.fault != 0 || bare_cr) {
        result = reject_line(context, n);
        return true;
    }
    cursor.count += static_cast<std::uint32_t>(__builtin_popcountll(lines.ends));
    if (!is_roomy(context.limits) || cursor.count >= context.limits.field_lines_max ||
        base > last_block(context.limits, base, cursor) ||
        base + kBlockSize > context.limits.head_max) {
        // Behind the end nothing is looked at; what is too long may be the LF that has not come.
        result = diagnose(context, end + 2 < n ? end + 2 : n);
        if (result.verdict == Verdict::kRejected) return true;
    }
    Suspects suspects;
    take_lines(block, data, base, lines, cursor, suspects);
    suspects.take(*this, data);
    scan_ = base + n;
    lines_ = cursor.state(base + kBlockSize);
    if (lines.end_cr == 0) return false;
    head_.field_count = cursor.count;
    if (end + 1 < n) {
        result = {Verdict::kAccepted, Reason::kNone, base + end + 2};
    } else {
        lines_.after_end_cr = true;
        if (scan_ < size) result = take_end_lf(context);
    }
    return true;
}

// From wherever the parser stands.
template <class Block>
[[gnu::noinline]] ParseResult HeadParser::rest(const Context& context, std::size_t size) {
    const char* const data = context.data;
    if (scan_ >= size) return {};
    ParseResult result;
    unsigned n = 0;
    while (phase_ != Phase::kFields) {
        const Block block = block_at<Block>(data + scan_, size - scan_, n);
        unsigned at = 0;
        if (!request_line(context, all_masks(block), n, at, result)) return result;
        scan_ += at;
        if (scan_ >= size) return {};
    }
    if (lines_.after_end_cr) return take_end_lf(context);
    while (scan_ < size) {
        if (size - scan_ >= kBlockSize && is_roomy(context.limits)) {
            const std::uint32_t length = whole_blocks<Block>(data, size, context.limits);
            if (length != 0) return {Verdict::kAccepted, Reason::kNone, length};
            if (scan_ == size) break;
        }
        if (any_block<Block>(context, size, result)) return result;
    }
    return {};
}

template <class Block>
ParseResult HeadParser::parse_with(HeadParser& parser, const char* data, std::size_t size,
                                   const Limits& limits, Strictness strictness) {
    if (parser.scan_ == 0 && is_roomy(limits) && strictness != Strictness::kBrowser) [[likely]] {
        const std::uint32_t length = parser.first_block<Block>(data, size, limits);
        if (length != 0) return {Verdict::kAccepted, Reason::kNone, length};
    }
    return parser.rest<Block>({data, limits, strictness}, size);
}

namespace {

template <class Block>
void classify_with(const char* block, BlockMasks* masks) {
    *masks = all_masks(Block(block));
}
template <class Block>
void classify_part_with(const char* block, unsigned size, BlockMasks* masks) {
    *masks = all_masks(Block(block, size));
}

}  // namespace

}  // namespace httpmark
