#include "content/collected_form.hpp"

#include <string>
#include <vector>

#include "content/form.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

// All texts of up to five of these: the same pairs as one after the other gives.
TEST(CollectedForm, a_urlencoded_one_holds_what_a_reader_reads) {
    const std::string_view pieces[] = {"a", "=", "&", "+", "%41", "%"};
    std::vector<std::string> texts = {""};
    for (std::size_t begin = 0, round = 0; round < 5; ++round) {
        const std::size_t end = texts.size();
        for (std::size_t i = begin; i < end; ++i) {
            for (const std::string_view piece : pieces)
                texts.push_back(texts[i] + std::string(piece));
        }
        begin = end;
    }
    for (const std::string& text : texts) {
        const Form form = Form::of_urlencoded(text, {.fields_max = 2});
        FormReader reader(text, {.fields_max = 2});
        FormField field;
        std::size_t number = 0;
        while (reader.next(field)) {
            if (number < form.entries().size()) {
                const FormEntry& entry = form.entries()[number];
                LAW(form_text_means(field.name, entry.name), << text);
                LAW(form_text_means(field.value, entry.value) && !entry.is_file, << text);
            }
            ++number;
        }
        LAW(form.fault() == reader.fault(), << text);
        LAW(form.entries().size() == (form.fault() == Reason::kNone ? number : 0), << text);
        LAW(form.fault() == Reason::kNone || form.offset() == reader.offset(), << text);
    }
}

TEST(CollectedForm, the_first_of_a_name_is_found) {
    const Form form = Form::of_urlencoded("a=1&b=2&%61=3&c");
    LAW(form.find("a")->value == "1" && form.find("b")->value == "2");
    LAW(form.find("c")->value.empty() && form.find("d") == nullptr);
    const Form moved = Form::of_urlencoded("name=value");
    const Form other = Form(Form::of_urlencoded("name=value"));
    LAW(moved.find("name")->value == other.find("name")->value);
}

std::string part(const std::string& fields, const std::string& content) {
    return "--b\r\nContent-Disposition: form-data; " + fields + "\r\n\r\n" + content + "\r\n";
}
const std::string kType = "multipart/form-data; boundary=b";

// Whatever a part holds, near delimiters too, it is one view of the content that came.
TEST(CollectedForm, values_of_parts_are_views_of_the_content) {
    const std::string pieces[] = {"\r", "\n", "-", "b", "\r\n--", "x"};
    std::vector<std::string> values = {""};
    for (std::size_t begin = 0, round = 0; round < 4; ++round) {
        const std::size_t end = values.size();
        for (std::size_t i = begin; i < end; ++i) {
            for (const std::string& piece : pieces) values.push_back(values[i] + piece);
        }
        begin = end;
    }
    for (const std::string& value : values) {
        // With its delimiter in it, the value is another form.
        if (("\r\n" + value).find("\r\n--b") != std::string::npos) continue;
        const std::string content =
            part("name=one", value) +
            part("name=\"t\\\"o\"; filename=f\r\nContent-Type: text/x", value) + "--b--\r\n";
        const Form form = Form::of_multipart(kType, content);
        ASSERT_EQ(form.entries().size(), 2U);
        const FormEntry& one = form.entries()[0];
        const FormEntry& two = form.entries()[1];
        LAW(one.name == "one" && one.value == value && !one.is_file && one.content_type.empty());
        LAW(two.name == "t\"o" && two.value == value && two.is_file && two.filename == "f");
        LAW(two.content_type == "text/x");
        LAW(one.value.data() >= content.data() &&
            two.value.data() + two.value.size() <= content.data() + content.size());
    }
}

TEST(CollectedForm, half_a_form_is_none) {
    const std::string content = part("name=one", "1") + part("name=two", "2") + "--b--";
    LAW(Form::of_multipart(kType, content).entries().size() == 2);
    for (std::size_t size = 0; size < content.size(); ++size) {
        const Form form = Form::of_multipart(kType, content.substr(0, size));
        LAW(form.fault() == Reason::kMultipartUnfinished && form.entries().empty(), << size);
        LAW(form.offset() == size && form.find("one") == nullptr, << size);
    }
    LAW(Form::of_multipart("multipart/form-data", content).fault() == Reason::kBoundaryMissing);
    LAW(Form::of_multipart("text/plain", content).fault() == Reason::kMultipartType);
    LAW(Form::of_multipart(kType, content, {.parts_max = 1}).fault() == Reason::kPartsTooMany);
    LAW(Form::of_multipart(kType, content, {.parts_max = 2}).fault() == Reason::kNone);
}

}  // namespace
}  // namespace httpmark
