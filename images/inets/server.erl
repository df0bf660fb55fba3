%% inets httpd as a server: one module for all paths, which repairs and refuses nothing.
-module(server).
-export([start/0, do/1]).
-include_lib("inets/include/httpd.hrl").

%% Flags of the command line: -listen ADDRESS PORT, -tls PORT CERTIFICATE KEY, -idle SECONDS.
start() ->
    {ok, [[Address, Port]]} = init:get_argument(listen),
    {ok, Bound} = inet:parse_address(Address),
    Idle = case init:get_argument(idle) of {ok, [[Seconds]]} -> [{keep_alive_timeout, list_to_integer(Seconds)}]; error -> [] end,
    Common = [
        {server_name, "httpmark"},
        {server_root, "."},
        {document_root, "."},
        {bind_address, Bound},
        {modules, [?MODULE]},
        {max_clients, 65536}
        | Idle
    ],
    ok = application:start(inets),
    {ok, _} = inets:start(httpd, [{port, list_to_integer(Port)} | Common]),
    case init:get_argument(tls) of
        {ok, [[TlsPort, Certificate, Key]]} ->
            {ok, _} = application:ensure_all_started(ssl),
            Files = [{certfile, Certificate}, {keyfile, Key}],
            {ok, _} = inets:start(httpd, [{port, list_to_integer(TlsPort)}, {socket_type, {ssl, Files}} | Common]);
        error -> ok
    end.

do(#mod{method = Method, request_uri = Target, http_version = Version} = Told) ->
    [Path | Query] = string:split(Target, "?"),
    {Status, Fields, Content} = answers:answer(#{
        method => list_to_binary(Method),
        path => list_to_binary(Path),
        query => list_to_binary(Query),
        target => list_to_binary(Target),
        version => list_to_binary(Version),
        content => iolist_to_binary(Told#mod.entity_body),
        %% httpd lists the last field first.
        fields => [{list_to_binary(Name), list_to_binary(Value)} || {Name, Value} <- lists:reverse(Told#mod.parsed_header)]
    }),
    Length = [{content_length, integer_to_list(byte_size(Content))} || Status =/= 204, Status =/= 304],
    Own = [field(string:lowercase(Name), binary_to_list(Value)) || {Name, Value} <- Fields],
    %% A module has to leave out the content itself, as httpd's own mod_head does.
    Shown = case Method of "HEAD" -> nobody; _ -> Content end,
    {proceed, [{response, {response, [{code, Status} | Length ++ Own], Shown}}]}.

%% httpd has atoms for the fields that it knows.
field(<<"content-type">>, Value) -> {content_type, Value};
field(<<"etag">>, Value) -> {etag, Value};
field(<<"location">>, Value) -> {location, Value};
field(<<"allow">>, Value) -> {allow, Value}.
