%% What images/README.md asks of a server, for servers in Erlang: one set of answers for all of them.
%%
%% It repairs nothing and refuses nothing: a server tells what it understood of a request, as a map of
%% binaries and null, and gets the status, the fields and the content of the answer.
-module(answers).
-export([answer/1]).

-define(HELLO, <<"Hello World!">>).
-define(PLAIN, {<<"Content-Type">>, <<"text/plain">>}).

answer(#{path := <<"/body">>, content := Content}) -> {200, [?PLAIN], Content};
answer(#{path := <<"/echo">>, query := Query}) -> json(object([{Name, text(Value)} || {Name, Value} <- parameters(Query)]));
answer(#{path := <<"/mirror">>} = Request) -> json(mirror(Request));
answer(#{path := <<"/slow">>}) ->
    timer:sleep(500),
    {200, [?PLAIN], ?HELLO};
answer(#{path := <<"/204">>}) -> {204, [], <<>>};
answer(#{path := <<"/304">>}) -> {304, [{<<"ETag">>, <<"\"httpmark\"">>}], <<>>};
answer(#{path := <<"/redirect">>}) -> {302, [{<<"Location">>, <<"/hello">>}], <<>>};
answer(#{path := <<"/big">>}) -> {200, [?PLAIN], binary:copy(<<"a">>, 1 bsl 20)};
answer(#{path := <<"/404">>}) -> {404, [?PLAIN], <<"Not Found">>};
answer(#{path := <<"/get-only">>, method := Method}) when Method =/= <<"GET">>, Method =/= <<"HEAD">> ->
    {405, [?PLAIN, {<<"Allow">>, <<"GET, HEAD">>}], <<"Method Not Allowed">>};
answer(_) -> {200, [?PLAIN], ?HELLO}.

parameters(Query) ->
    [{Name, case Value of true -> <<>>; _ -> Value end} || {Name, Value} <- uri_string:dissect_query(Query)].

mirror(#{method := Method, target := Target, version := Version, content := Content} = Request) ->
    object([
        {<<"method">>, octets(Method)},
        {<<"target">>, octets(Target)},
        {<<"authority">>, octets(maps:get(authority, Request, null))},
        {<<"version">>, octets(Version)},
        {<<"content">>, octets(Content)},
        {<<"fields">>, pairs(maps:get(fields, Request, null))},
        {<<"trailers">>, pairs(maps:get(trailers, Request, null))},
        {<<"request_number">>, <<"null">>}
    ]).

octets(null) -> <<"null">>;
octets(Binary) -> [$", base64:encode(Binary), $"].

pairs(null) -> <<"null">>;
pairs(Fields) -> list([list([octets(Name), octets(Value)]) || {Name, Value} <- Fields]).

json(Value) -> {200, [{<<"Content-Type">>, <<"application/json">>}], iolist_to_binary(Value)}.
list(Values) -> [$[, lists:join($,, Values), $]].
object(Members) -> [${, lists:join($,, [[text(Name), $:, Value] || {Name, Value} <- Members]), $}].
text(Text) -> [$", [escaped(Byte) || <<Byte>> <= Text], $"].

escaped(Byte) when Byte =:= $"; Byte =:= $\\ -> [$\\, Byte];
escaped(Byte) when Byte < 16#20 -> io_lib:format("\\u~4.16.0b", [Byte]);
escaped(Byte) -> Byte.
