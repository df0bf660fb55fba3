// What a handler reads of a request, through whole connections.
#include "app/request_content.hpp"

#include <string>

#include "answers.hpp"
#include "app/part_reader.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

// Tells a form as lines; a refusal as the library words it.
Reason tell_form(const Request& request, ResponseWriter& writer) {
    const Form form = read_form(request, {.fields_max = 3}, {.parts_max = 3, .part_max = 100});
    if (form.fault() != Reason::kNone) return refuse_content(writer, form);
    std::string text;
    for (const FormEntry& entry : form.entries()) {
        text += std::string(entry.name) + '=' + std::string(entry.value);
        if (entry.is_file) text += " file " + std::string(entry.filename);
        text += '\n';
    }
    return writer.answer(200, {}, text);
}

Reason tell_request(const Request& request, ResponseWriter& writer) {
    std::string text = request.decoded_value("name");
    text += '|' + request.parameter("q").value_or("none");
    text += '|' + std::string(request.cookie("c").value_or("none"));
    text += '|' + std::string(request.field("x-own").value_or("none"));
    return writer.answer(200, {}, text);
}

struct Served {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    Served() {
        Router::Builder routes;
        routes.add(kAnyMethod, "/form", tell_form, {.wants_content = true});
        routes.add(kAnyMethod, "/request/{name}", tell_request);
        router = built(routes);
        settings.router = router.get();
    }
    Answered ask(const std::string& octets) const {
        return answered(talk_every_way(octets, settings).sent);
    }
    Answered post(const std::string& type, const std::string& content) const {
        const std::string length = "Content-Length: " + std::to_string(content.size()) + "\r\n";
        return ask(request("POST /form HTTP/1.1", type + length, content));
    }
};

const std::string kUrlencoded = "Content-Type: application/x-www-form-urlencoded\r\n";
const std::string kMultipart = "Content-Type: multipart/form-data; boundary=\"b\"\r\n";

TEST(RequestContent, forms_are_read_as_their_type_says) {
    const Served served;
    LAW(served.post(kUrlencoded, "a=1&b+c=%26").content == "a=1\nb c=&\n");
    LAW(served.post("Content-Type: Application/X-WWW-Form-Urlencoded;charset=UTF-8\r\n", "a")
            .content == "a=\n");
    LAW(served
            .post(
                kMultipart,
                "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b\r\n"
                "Content-Disposition: form-data; name=f; filename=\"n.txt\"\r\n\r\n\r\nx\r\n--b--")
            .content == "a=1\nf=\r\nx file n.txt\n");
    LAW(served.post(kUrlencoded, "").content.empty());
}

TEST(RequestContent, what_is_no_form_is_refused_with_name_and_offset) {
    const Served served;
    const auto refused = [&](int status, const std::string& text, const Answered& answer) {
        LAW(answer.status == status && answer.content == text, << answer.status << answer.content);
    };
    refused(415, "form-type at 0\n", served.post("", "a=1"));
    refused(415, "form-type at 0\n", served.post("Content-Type: text/plain\r\n", "a=1"));
    refused(400, "media-type-syntax at 4\n", served.post("Content-Type: text\r\n", "a=1"));
    refused(400, "form-percent at 4\n", served.post(kUrlencoded, "a=1&%zz"));
    refused(413, "form-fields-too-many at 6\n", served.post(kUrlencoded, "a&b&c&d"));
    refused(400, "boundary-missing at 19\n",
            served.post("Content-Type: multipart/form-data\r\n", "a"));
    refused(400, "multipart-unfinished at 5\n", served.post(kMultipart, "--b\r\n"));
    refused(415, "coding-unknown\n", served.post(kUrlencoded + "Content-Encoding: gzip\r\n", "a"));
    const std::string head = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n";
    refused(413, "part-too-large at " + std::to_string(head.size() + 100) + "\n",
            served.post(kMultipart, head + std::string(101, 'x') + "\r\n--b--"));
}

// Takes parts, and leaves what is wrong with them to the library.
struct AnyParts : PartReader {
    Flow on_part(const MultipartPart&, ResponseWriter&) override { return Flow::kMore; }
    Flow on_piece(std::string_view, ResponseWriter&) override { return Flow::kMore; }
    Flow on_part_end(ResponseWriter&) override { return Flow::kMore; }
    Reason on_end(const Request&, ResponseWriter& writer) override {
        return writer.answer(200, {}, "parts");
    }
};

TEST(RequestContent, the_error_handler_words_what_is_wrong_with_content) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/form", tell_form, {.wants_content = true});
    routes.add(kAnyMethod, "/coded", tell_form, {.wants_content = true, .codes_answers = true});
    routes.add(kAnyMethod, "/parts",
               [](const Request& request, ResponseWriter& writer) {
                   return read_parts(request, writer, std::make_unique<AnyParts>());
               },
               {.streams = true});
    routes.set_error([](const Refusal& refusal) -> std::optional<RefusalContent> {
        if (refusal.reason == Reason::kFormType) return std::nullopt;
        if (refusal.reason == Reason::kFormFieldsTooMany) return RefusalContent{"x", "a\r\nb: c"};
        std::string text(refusal.name);
        if (refusal.offset != Refusal::kNoOffset) text += '@' + std::to_string(refusal.offset);
        text += ' ' + std::string(refusal.request->target.path) + ' ' + std::string(refusal.peer);
        return RefusalContent{text, "application/problem+json"};
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    const auto post = [&](const std::string& path, const std::string& type,
                          const std::string& content) {
        const std::string length = "Content-Length: " + std::to_string(content.size()) + "\r\n";
        const std::string asked = request("POST " + path + " HTTP/1.1", type + length, content);
        return answered(talk_every_way(asked, settings).sent);
    };
    for (const std::string path : {"/form", "/coded"}) {
        const Answered bad = post(path, kUrlencoded, "a=1&%zz");
        LAW(bad.status == 400 && bad.content == "form-percent@4 " + path + " 192.0.2.7:5000",
            << bad.content);
        LAW(bad.field("content-type") == "application/problem+json");
    }
    const Answered coded = post("/form", kUrlencoded + "Content-Encoding: gzip\r\n", "a");
    LAW(coded.status == 415 && coded.content == "coding-unknown /form 192.0.2.7:5000",
        << coded.content);
    LAW(coded.field("accept-encoding") == "identity");
    const Answered parts = post("/parts", kMultipart, "--b\r\n");
    LAW(parts.status == 400 && parts.content == "multipart-unfinished@5 /parts 192.0.2.7:5000",
        << parts.content);
    // What it does not say, and what cannot stand in an answer, is worded as without it.
    LAW(post("/form", "", "a=1").content == "form-type at 0\n");
    LAW(post("/form", kUrlencoded, "a&b&c&d").content == "form-fields-too-many at 6\n");
}

TEST(RequestContent, a_handler_reads_path_query_cookies_and_fields) {
    const Served served;
    const auto told = [&](const std::string& target, const std::string& fields,
                          const std::string& content = "") {
        return served.ask(request("POST " + target + " HTTP/1.1", fields, content)).content;
    };
    LAW(told("/request/a%20b%2Fc+d?q=1+2%26&q=3", "Cookie: b=1; c=2\r\nX-OWN: v \r\n") ==
        "a b/c+d|1 2&|2|v");
    LAW(told("/request/a?p", "") == "a|none|none|none");
    LAW(told("/request/%00?%71=", "Cookie: x=y\r\nCookie: c=z\r\n") ==
        std::string("\0||z|none", 9));
    // Also where its content comes after all of it.
    LAW(told("/request/a?q=b", "X-Own: v\r\nContent-Length: 5\r\n", "12345") == "a|b|none|v");
}

}  // namespace
}  // namespace httpmark
