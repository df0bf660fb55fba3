// A JSON API: notes, kept in memory.
//
//     curl -d 'text=buy milk' localhost:8080/notes
//     curl 'localhost:8080/notes?contains=milk'
//     curl -X DELETE localhost:8080/notes/1
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <httpmark/httpmark.hpp>
#include <map>
#include <mutex>
#include <string>

using namespace httpmark;

namespace {

// All workers call handlers at a time, so what they share needs a lock.
std::mutex notes_lock;
std::map<unsigned, std::string> notes;
unsigned last_id = 0;

Server* running = nullptr;

void write_note(JsonWriter& json, unsigned id, const std::string& text) {
    json.begin_object().key("id").number(id).key("text").string(text).end_object();
}

Reason answer_problem(ResponseWriter& writer, unsigned status, std::string_view problem) {
    return answer_json(writer, status, [&](JsonWriter& json) {
        json.begin_object().key("problem").string(problem).end_object();
    });
}

Reason list_notes(const Request& request, ResponseWriter& writer) {
    const std::string wanted = request.parameter("contains").value_or("");
    const std::lock_guard held(notes_lock);
    return answer_json(writer, 200, [&](JsonWriter& json) {
        json.begin_array();
        for (const auto& [id, text] : notes) {
            if (text.find(wanted) != std::string::npos) write_note(json, id, text);
        }
        json.end_array();
    });
}

Reason add_note(const Request& request, ResponseWriter& writer) {
    const Form form = read_form(request);
    if (form.fault() != Reason::kNone) return refuse_content(writer, form);
    const FormEntry* const text = form.find("text");
    if (text == nullptr) return answer_problem(writer, 422, "text is missing");
    const std::lock_guard held(notes_lock);
    const unsigned id = ++last_id;
    notes[id] = text->value;
    const std::string place = "/notes/" + std::to_string(id);
    const Field location{"Location", place};
    return answer_json(writer, 201, [&](JsonWriter& json) { write_note(json, id, notes[id]); },
                       {&location, 1});
}

Reason delete_note(const Request& request, ResponseWriter& writer) {
    const std::string_view text = request.value("id");
    unsigned id = 0;
    const char* const end = text.data() + text.size();
    const bool is_number = std::from_chars(text.data(), end, id).ptr == end;
    const std::lock_guard held(notes_lock);
    if (!is_number || notes.erase(id) == 0)
        return answer_problem(writer, 404, "there is no such note");
    return writer.answer(204, {}, {});
}

// Browsers say where a request comes from: pages of other sites may not change notes.
Reason refuse_other_sites(const Request& request, ResponseWriter&) {
    const std::string_view site = request.field("sec-fetch-site").value_or("none");
    const bool reads = request.head.method == Method::kGet || request.head.method == Method::kHead;
    return reads || site == "none" || site == "same-origin" ? Reason::kNone : Reason::kForbidden;
}

// What the server itself refuses is said in JSON, too.
RefusalContent say_why(const Refusal& refusal) {
    return {"{\"problem\":\"" + std::string(refusal.name) + "\"}", "application/json"};
}

}  // namespace

int main(int argc, char** argv) {
    Router::Builder routes;
    routes.add(Method::kGet, "/notes", list_notes, {.codes_answers = true});
    routes.add(Method::kPost, "/notes", add_note, {.wants_content = true, .body_max = 10000});
    routes.add(Method::kDelete, "/notes/{id}", delete_note);
    routes.set_not_found([](const Request&, ResponseWriter& writer) {
        return answer_problem(writer, 404, "there is nothing here");
    });
    routes.before(refuse_other_sites, "/notes");
    routes.after(
        [](const Request&, AnswerHead& head) { head.add("X-Content-Type-Options", "nosniff"); });
    routes.set_error(say_why);

    StartError error;
    const int port = argc > 1 ? std::atoi(argv[1]) : 8080;
    const auto server = Server::start(routes, {.port = port}, error);
    if (server == nullptr) {
        std::fprintf(stderr, "%s\n", error.text.c_str());
        return 1;
    }
    std::printf("listening on 127.0.0.1:%d\n", server->port());
    std::fflush(stdout);

    running = server.get();
    std::signal(SIGTERM, [](int) { running->stop(); });
    std::signal(SIGINT, [](int) { running->stop(); });
    server->wait();
}
