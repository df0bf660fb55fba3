#include "files/validators.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>

namespace httpmark {

namespace {

// Writes entity tags: every number in hexadecimal digits, a hyphen between two.
class TagWriter {
  public:
    TagWriter(char* out, char* end) : out_(out), end_(end) {}

    TagWriter& put(char c) {
        *out_++ = c;
        return *this;
    }
    TagWriter& put_number(std::integral auto number) {
        out_ = std::to_chars(out_, end_, number, 16).ptr;
        return *this;
    }
    TagWriter& put_time(const FileTime& time) {
        return put('-').put_number(time.seconds).put('.').put_number(time.nanoseconds);
    }
    char* out() const { return out_; }

  private:
    char* out_;
    char* end_;
};

}  // namespace

Validators::Validators(const FileFacts& facts, std::int64_t now)
    : modified_(std::min(facts.modified.seconds, now)), now_(now) {
    TagWriter writer(text_.data(), text_.data() + text_.size());
    writer.put('W').put('/').put('"').put_number(facts.inode).put('-').put_number(facts.size);
    writer.put_time(facts.modified).put_time(facts.changed).put('"');
    end_ = static_cast<std::size_t>(writer.out() - text_.data());
    // A change that lies ahead, because a clock was set back, is no older.
    const bool is_settled = facts.changed.seconds < now - kSettledSeconds;
    if (is_settled) begin_ = kWeakSize;
    if (put_imf_fixdate(modified_, date_.data())) date_size_ = date_.size();
}

}  // namespace httpmark
