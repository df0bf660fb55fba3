#include "websocket/extensions.hpp"

#include <string>
#include <vector>

#include "laws.hpp"

namespace httpmark::websocket {
namespace {

DeflateSettings on(DeflateParameters wanted = {}) {
    DeflateSettings settings;
    settings.enabled = true;
    settings.wanted = wanted;
    return settings;
}

// The answer's field value; "declined" where nothing is agreed, "refused" where the grammar is not
// kept.
std::string answer(const std::vector<std::string>& lines, const DeflateSettings& settings = on()) {
    ExtensionOffers offers(settings);
    for (const std::string& line : lines) {
        if (!offers.take(line)) return "refused";
    }
    LAW(offers.deflate().has_value() == !offers.answer().empty());
    return offers.deflate() ? offers.answer() : "declined";
}

TEST(Extensions, it_is_off_unless_it_is_turned_on) {
    LAW(!DeflateSettings().enabled);
    LAW(answer({"permessage-deflate"}, {}) == "declined");
    LAW(answer({"permessage-deflate"}) == "permessage-deflate");
}

// RFC 7692 7.1: each offer with its answer.
TEST(Extensions, what_is_agreed) {
    struct Row {
        const char* offer;
        const char* answer;
    };
    const std::string name = "permessage-deflate";
    for (const Row& row : {
             Row{"", ""},
             {"; server_no_context_takeover", "; server_no_context_takeover"},
             {"; client_no_context_takeover", "; client_no_context_takeover"},
             {"; server_max_window_bits=10", "; server_max_window_bits=10"},
             {"; server_max_window_bits=8", "; server_max_window_bits=8"},
             {"; server_max_window_bits=15", "; server_max_window_bits=15"},
             {"; server_max_window_bits=\"12\"", "; server_max_window_bits=12"},
             {"; server_max_window_bits=\"1\\2\"", "; server_max_window_bits=12"},
             {"; client_max_window_bits", ""},
             {"; client_max_window_bits=9", "; client_max_window_bits=9"},
             {"; client_max_window_bits=15", ""},
             {" ;\tCLIENT_NO_CONTEXT_TAKEOVER ; Server_Max_Window_Bits = 11 ",
              "; client_no_context_takeover; server_max_window_bits=11"},
         }) {
        LAW(answer({name + row.offer}) == name + row.answer, << row.offer);
        LAW(answer({"x-other; a=b, " + name + row.offer + ", " + name}) == name + row.answer,
            << row.offer);
    }
    LAW(answer({"PerMessage-Deflate"}) == name);
}

TEST(Extensions, an_offer_with_what_may_not_be_is_declined_and_the_next_one_is_looked_at) {
    for (const std::string parameters :
         {"server_max_window_bits", "server_max_window_bits=7", "server_max_window_bits=16",
          "server_max_window_bits=08", "server_max_window_bits=1e1", "client_max_window_bits=7",
          "client_max_window_bits=+9", "server_no_context_takeover=1",
          "client_no_context_takeover=true", "unknown", "unknown=1",
          "server_no_context_takeover; server_no_context_takeover",
          "client_max_window_bits; client_max_window_bits=9",
          "client_no_context_takeover; client_no_context_takeover",
          "server_max_window_bits=9; server_max_window_bits=9"}) {
        const std::string offer = "permessage-deflate; " + parameters;
        LAW(answer({offer}) == "declined", << parameters);
        LAW(answer({offer + ", permessage-deflate; server_max_window_bits=9"}) ==
                "permessage-deflate; server_max_window_bits=9",
            << parameters);
        LAW(answer({offer, "permessage-deflate"}) == "permessage-deflate", << parameters);
    }
    LAW(answer({"x-webkit-deflate-frame"}) == "declined");
}

// What the server wants for itself narrows each offer, and a client that did not say that it can be
// told about its window is not told.
TEST(Extensions, what_the_server_asks_for) {
    const DeflateSettings thrifty = on({true, true, 10, 9});
    const std::string base =
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
        "server_max_window_bits=";
    LAW(answer({"permessage-deflate"}, thrifty) == base + "10");
    LAW(answer({"permessage-deflate; client_max_window_bits"}, thrifty) ==
        base + "10; client_max_window_bits=9");
    LAW(answer({"permessage-deflate; client_max_window_bits=12; server_max_window_bits=9"},
               thrifty) == base + "9; client_max_window_bits=9");
    ExtensionOffers silent(thrifty);
    LAW(silent.take("permessage-deflate") && silent.deflate()->client_max_window_bits == 15);
}

TEST(Extensions, the_grammar) {
    for (const char* bad :
         {"",           " ",       ",",      ";",        "=",       "a;",          "a;;b",
          "a b",        "a;b=",    "a;b=\"", "a;b=\"\"", "a;b=\"c", "a;b=\"c d\"", "a;b=\"c\\\"",
          "a;b=\"c\"d", "a;b=c=d", "a=b",    "\"a\"",    "a,;b",    "a/1",         "a;b=c d",
          "a\x80"}) {
        LAW(answer({bad}) == "refused", << bad);
        LAW(answer({bad}, {}) == "refused", << bad);
    }
    for (const char* good : {"a", "a,b", "a , b", ",a", "a,", "a,,b", "a;b", "a ; b ; c", "a;b=c",
                             "a;b=\"c\"", "a;b=\"\\c\"", "a;b=c, d;e=f"}) {
        LAW(answer({good}) == "declined", << good);
    }
}

// Every beginning of a list is judged without a look behind it (a sanitizer sees to that), and a
// fault does not heal: what is added to a refused beginning may only end what was open.
TEST(Extensions, every_beginning_of_a_list) {
    const std::string list =
        "x; y=\"z\\z\", permessage-deflate; client_max_window_bits; server_max_window_bits=10";
    for (std::size_t size = 0; size <= list.size(); ++size) {
        const std::vector<char> own(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(size));
        ExtensionOffers offers(on());
        const bool is_good = offers.take({own.data(), own.size()});
        LAW(is_good || !offers.deflate() || size > list.find("permessage"), << size);
    }
}

}  // namespace
}  // namespace httpmark::websocket
