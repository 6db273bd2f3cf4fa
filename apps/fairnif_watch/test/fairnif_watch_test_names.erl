%% Blocks a scheduler again and again by one NIF, in a peer node that is watched, and counts by what
%% name it was reported. It judges nothing: fairnif_watch_names_SUITE does.
-module(fairnif_watch_test_names).

-export([run/3, subjects/0]).

%% How much of a processor a call takes, ms: so long it blocks its scheduler where nothing else
%% runs.
-define(HOLD_MS, 60).
%% Between two calls: each is a finding of its own, and the watch tells of 50 things a second.
-define(PAUSE_MS, 20).
%% After the last one: what is learned of it.
-define(LEARN_MS, 2500).

%% @doc Of each: the module that must be there, and the name that is right.
subjects() ->
    [{pbkdf2, crypto, <<"crypto:pbkdf2_hmac_nif/5">>},
     {jiffy, jiffy, <<"jiffy:nif_decode_init/2">>},
     {xml, fxml_stream, <<"fxml_stream:parse_element/1">>},
     {yaml, fast_yaml, <<"fast_yaml:nif_decode/2">>},
     {{fairnif_watch_block_cpp, ""}, none, <<"fairnif_watch_block_cpp:spin/1">>},
     {{fairnif_watch_block_cpp, ".stripped"}, none, <<"fairnif_watch_block_cpp:spin/1">>},
     {{fairnif_watch_block_rust, ""}, none, <<"fairnif_watch_block_rust:spin/1">>},
     {{fairnif_watch_block_rust, ".stripped"}, none, <<"fairnif_watch_block_rust:spin/1">>}].

%% @doc Blocks that many times, then answers how many findings had which name, which said another
%% one in their sentence, and the symbols of libraries in their stacks. `{skip, Why}': there is no
%% such NIF here.
run(Subject, Directory, Times) ->
    case prepared(Subject, Directory) of
        {skip, _} = Skip -> Skip;
        Call -> watched(Call, Times)
    end.

prepared(pbkdf2, _) ->
    sized(fun(Rounds) -> crypto:pbkdf2_hmac(sha256, <<"p">>, <<"s">>, Rounds, 32) end, 20000);
prepared(jiffy, _) ->
    %% Else it yields by itself.
    sized(fun(N) -> jiffy:decode(list(N), [{bytes_per_red, 1000000000}]) end, 20000);
prepared(xml, _) ->
    sized(fun(N) -> fxml_stream:parse_element(xml(N)) end, 5000);
prepared(yaml, _) ->
    sized(fun(N) -> {ok, _} = fast_yaml:decode(yaml(N)) end, 3000);
prepared({Module, Variant}, Directory) ->
    Library = filename:join(Directory, atom_to_list(Module) ++ Variant),
    case filelib:is_regular(Library ++ ".so") of
        true -> ok = Module:load(Library), sized(fun Module:spin/1, 5000);
        false -> {skip, Library ++ ".so is not built"}
    end.

list(N) -> kept({list, N}, fun() -> ["[", lists:join(",", lists:duplicate(N, "1234567")), "]"] end).
xml(N) -> kept({xml, N}, fun() -> ["<a>", lists:duplicate(N, "<b c='d'>text</b>"), "</a>"] end).
yaml(N) -> kept({yaml, N}, fun() -> lists:duplicate(N, "- a: 1\n") end).

%% Made once: what is timed is the call.
kept(Key, Make) ->
    case persistent_term:get(Key, none) of
        none ->
            persistent_term:put(Key, iolist_to_binary(Make())),
            persistent_term:get(Key);
        Binary ->
            Binary
    end.

%% The call with a size that takes that much processor time: beside other programs the clock says
%% more.
sized(Fun, Some) ->
    _ = Fun(Some),
    _ = statistics(runtime),
    _ = [Fun(Some) || _ <- lists:seq(1, 10)],
    {_, Ms} = statistics(runtime),
    Size = max(1, 10 * Some * ?HOLD_MS div max(1, Ms)),
    _ = Fun(Size),
    fun() -> Fun(Size) end.

watched(Call, Times) ->
    {ok, _} = fairnif_watch:start(#{log => false}),
    {ok, _} = fairnif_watch:subscribe(self()),
    timer:sleep(500),
    {Caller, _} = spawn_monitor(fun() -> calls(Call, Times) end),
    Findings = gather(Caller, #{}),
    ok = fairnif_watch:stop(),
    Blocked = [{maps:get(name, C), S}
               || #{detector := scheduler_blocked, culprit := C, sentence := S}
                      <- maps:values(Findings)],
    #{names => lists:foldl(fun({Name, _}, Counts) ->
                                   maps:update_with(Name, fun(N) -> N + 1 end, 1, Counts)
                           end, #{}, Blocked),
      differ => [{Name, Sentence} || {Name, Sentence} <- Blocked,
                                     string:find(Sentence, Name) =:= nomatch],
      symbols => lists:usort([Symbol || #{stack := Stack} <- maps:values(Findings),
                                        #{in := library, symbol := Symbol} <- Stack])}.

%% Each in a process of its own, whose garbage goes with it.
calls(_, 0) ->
    ok;
calls(Call, N) ->
    {Pid, Monitor} = spawn_monitor(fun() -> _ = Call() end),
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    timer:sleep(?PAUSE_MS),
    calls(Call, N - 1).

%% The last version of each finding; what is learned of them comes a little later.
gather(Caller, Findings) ->
    receive
        {fairnif_watch, _, {finding, #{id := Id} = Finding}} ->
            gather(Caller, Findings#{Id => Finding});
        {fairnif_watch, _, _} ->
            gather(Caller, Findings);
        {'DOWN', _, process, Caller, normal} ->
            _ = erlang:send_after(?LEARN_MS, self(), over),
            gather(Caller, Findings);
        {'DOWN', _, process, Caller, Why} ->
            error(Why);
        over ->
            Findings
    end.
