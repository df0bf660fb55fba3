%% Yaws, embedded, as a server: one appmod for all paths, which repairs and refuses nothing.
-module(server).
-export([start/0, out/1]).
-include_lib("yaws/include/yaws_api.hrl").

%% Flags of the command line: -listen ADDRESS PORT, -tls PORT CERTIFICATE KEY, -idle MILLISECONDS,
%% -scratch FOLDER.
start() ->
    {ok, [[Address, Port]]} = init:get_argument(listen),
    {ok, [[Scratch]]} = init:get_argument(scratch),
    {ok, Bound} = inet:parse_address(Address),
    Idle = case init:get_argument(idle) of {ok, [[Time]]} -> [{keepalive_timeout, list_to_integer(Time)}]; error -> [] end,
    Common = [
        {servername, "httpmark"},
        {listen, Bound},
        {listen_opts, [{backlog, 4096}]},
        {docroot, Scratch},
        {appmods, [{"/", ?MODULE}]},
        {partial_post_size, nolimit},
        {flags, [{access_log, false}, {auth_log, false}]}
    ],
    Secure = case init:get_argument(tls) of
        {ok, [[TlsPort, Certificate, Key]]} ->
            {ok, _} = application:ensure_all_started(ssl),
            [[{port, list_to_integer(TlsPort)}, {ssl, [{certfile, Certificate}, {keyfile, Key}]} | Common]];
        error -> []
    end,
    Global = [{logdir, Scratch}, {id, "httpmark"}, {flags, [{auth_log, false}, {fail_on_bind_err, true}]} | Idle],
    ok = yaws:start_embedded(Scratch, [[{port, list_to_integer(Port)} | Common] | Secure], Global, "httpmark").

%% Content comes in pieces: each in a call of its own, and the last with what came before as state.
out(#arg{clidata = {partial, Piece}} = Arg) -> {get_more, cont, [before(Arg#arg.state), Piece]};
out(#arg{req = #http_request{method = Method, path = Told, version = {Major, Minor}}} = Arg) ->
    Target = target(Told),
    [Path | Query] = string:split(Target, "?"),
    {Status, Fields, Content} = answers:answer(#{
        method => method(Method),
        path => list_to_binary(Path),
        query => list_to_binary(Query),
        target => list_to_binary(Target),
        version => iolist_to_binary(io_lib:format("HTTP/~b.~b", [Major, Minor])),
        content => iolist_to_binary([before(Arg#arg.state), content(Arg#arg.clidata)]),
        %% Yaws lists the last field first.
        fields => lists:reverse(
            yaws_api:reformat_header(Arg#arg.headers, fun(Name, Value) -> {octets(Name), octets(Value)} end))
    }),
    [{status, Status}
        | [{header, {binary_to_list(Name), binary_to_list(Value)}} || {Name, Value} <- Fields, Name =/= <<"Content-Type">>]]
    ++ [{content, binary_to_list(Type), Content} || {<<"Content-Type">>, Type} <- Fields].

target({abs_path, Path}) -> Path;
target('*') -> "*";
target({absoluteURI, _, _, _, Path}) -> Path;
target(Other) -> Other.

method(Method) when is_atom(Method) -> atom_to_binary(Method);
method(Method) -> list_to_binary(Method).

before(undefined) -> [];
before(Pieces) -> Pieces.

content(Content) when is_binary(Content) -> Content;
content(_) -> <<>>.

octets(Name) when is_atom(Name) -> atom_to_binary(Name);
octets(Text) -> list_to_binary(Text).
