// Whatever a handler asks for, the response is framed as the writer says or not written at all.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"
#include "http/response.hpp"
#include "http/syntax.hpp"

namespace {

using namespace httpmark;

class StringSink final : public Sink {
  public:
    void append(const LaterContent&) override {}
    std::string text() const { return {room_.begin(), room_.end() - kCopySlack}; }

  private:
    char* prepare_more(std::size_t size) override {
        const std::size_t at = room_.size() - kCopySlack;
        room_.resize(at + size + kCopySlack);
        return room_.data() + at;
    }
    std::vector<char> room_ = std::vector<char>(kCopySlack);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 4) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(octets + 4), size - 4);
    const std::size_t name_size = std::min<std::size_t>(octets[0], rest.size());
    const std::string_view name = rest.substr(0, name_size);
    const std::size_t value_size = std::min<std::size_t>(octets[1], rest.size() - name_size);
    const std::string_view value = rest.substr(name_size, value_size);
    const std::string_view content = rest.substr(name_size + value_size);
    constexpr unsigned kStatuses[] = {100, 200, 204, 205, 304, 404, 500};
    const unsigned status = kStatuses[octets[2] % 7];
    const std::string_view allow = (octets[3] & 8) != 0 ? "GET, HEAD" : "";
    const ResponseOptions options{(octets[3] & 1) != 0, (octets[3] & 2) != 0, (octets[3] & 4) != 0,
                                  allow};
    const bool named = (octets[3] & 16) != 0;
    DateLine date(named ? "httpmark" : "");
    date.update(784111777);
    StringSink sink;
    ResponseWriter writer(sink, date, options);
    const Field field{name, value};
    const bool done = writer.write(status, {field}, content);
    CHECK(done == (field_is_safe(field) && status >= 200));
    if (!done) {
        CHECK(sink.text().empty());
    } else {
        const std::string text = sink.text();
        const std::size_t end = text.find("\r\n\r\n");
        CHECK(end != std::string::npos);
        std::size_t lines = 0;
        for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos && at <= end;
             at += 2)
            ++lines;
        const bool bare = status_forbids_content(status);
        CHECK(lines == 3U + (status_forbids_length(status) ? 0 : 1) + (named ? 1 : 0) +
                           (allow.empty() ? 0 : 1) +
                           (options.close || options.say_keep_alive ? 1 : 0));
        CHECK(text.size() == end + 4 + (bare || options.head_request ? 0 : content.size()));
    }
    const std::string host(rest);
    CHECK(parse_host(host).kind == judge_host_value(host));
    return 0;
}
