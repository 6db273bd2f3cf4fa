%% A node to be watched: whether the watch is attached to it, and whether it is "as it was" once the
%% watch has gone. Its cookie is suite_cookie.
-module(fairnif_watch_test_node).

-export([node_up/0, node_up/1, paths/0, state/1, as_before/2, as_before/3, attached/1,
         is_attached/1, subscribers/1, signal/2, until/2, contains/2]).

node_up() ->
    node_up(#{}).

node_up(More) ->
    Args = maps:get(args, More, []) ++ ["-setcookie", "suite_cookie"],
    {ok, Peer, Node} = fairnif_check_peer:control(
                         group_leader(),
                         maps:merge(#{name => peer:random_name("watched"), longnames => false},
                                    More#{args => Args})),
    {Peer, Node}.

paths() ->
    lists:append([["-pa", filename:dirname(code:which(M))] || M <- [fairnif_watch]]).

%% And its bringer is done with that.
attached(Peer) ->
    until(fun() -> is_attached(Peer)
                       andalso peer:call(Peer, erlang, whereis, [fairnif_watch_attaching])
                           =:= undefined
          end, "the watch is there").

is_attached(Peer) ->
    peer:call(Peer, erlang, whereis, [fairnif_watch_collector]) =/= undefined.

subscribers(Peer) ->
    #{counters := #{subscribers := N}} = peer:call(Peer, fairnif_watch, view, []),
    N.

signal(Os, Name) when is_integer(Os) -> signal(integer_to_list(Os), Name);
signal(Os, Name) -> [] = os:cmd("kill -" ++ Name ++ " " ++ Os).

%% ---- a node's state ----

%% Everything that is meant by "as it was". Modules of OTP that its code server loaded on demand,
%% for us or for anybody, are no trace of ours.
state(Peer) ->
    Otp = peer:call(Peer, code, lib_dir, []),
    Call = fun(M, F, A) -> peer:call(Peer, M, F, A) end,
    Os = Call(os, getpid, []),
    Folder = fun(Name) ->
                     {ok, Files} = file:list_dir(["/proc/", Os, "/", Name]),
                     Files
             end,
    #{processes => lists:sort([process(Peer, P) || P <- Call(erlang, processes, [])]),
      modules => lists:sort([M || M <- Call(erlang, loaded, []),
                                  not is_otp(Call(code, which, [M]), Otp)]),
      ets => length(Call(ets, all, [])),
      persistent_terms => maps:get(count, Call(persistent_term, info, [])),
      ports => length(Call(erlang, ports, [])),
      descriptors => length(Folder("fd")),
      threads => length(Folder("task")),
      applications => lists:sort([A || {A, _, _} <- Call(application, which_applications, [])]),
      loaded_applications => lists:sort([A || {A, _, _}
                                                  <- Call(application, loaded_applications, [])]),
      paths => Call(code, get_path, []),
      handlers => lists:sort(Call(logger, get_handler_ids, [])),
      system_monitor => Call(erlang, system_monitor, []),
      scheduler_flags => Call(erlang, system_info, [schedulers_online]),
      connected => length(Call(erlang, nodes, [connected])),
      signals => line(["/proc/", Os, "/status"], "SigCgt"),
      mapped => mapped(Os),
      files => lists:sort([F || Place <- ["/tmp", "/dev/shm", os:getenv("TMPDIR", "/tmp")],
                                F <- filelib:wildcard(Place ++ "/fairnif_watch_" ++ Os ++ "_*")])}.

is_otp(preloaded, _) -> true;
is_otp(File, Otp) when is_list(File) -> lists:prefix(Otp, File);
is_otp(_, _) -> false.

%% By what it is, since another one of the same kind is as good.
process(Peer, Pid) ->
    Items = [registered_name, initial_call, dictionary],
    case peer:call(Peer, erlang, process_info, [Pid, Items]) of
        [{_, []}, {_, Call}, {_, Dictionary}] ->
            proplists:get_value('$initial_call', Dictionary, Call);
        [{_, Name} | _] -> Name;
        undefined -> gone
    end.

line(File, Word) ->
    {ok, Text} = file:read_file(File),
    [L || L <- binary:split(Text, <<"\n">>, [global]), string:prefix(L, Word) =/= nomatch].

mapped(Os) ->
    {ok, Maps} = file:read_file(["/proc/", Os, "/maps"]),
    lists:usort([lists:last(binary:split(L, <<" ">>, [global]))
                 || L <- binary:split(Maps, <<"\n">>, [global]),
                    binary:match(L, <<"fairnif_watch">>) =/= nomatch]).

as_before(Peer, Before) ->
    as_before(Peer, Before, []).

as_before(Peer, Before, Except) ->
    Differs = fun() ->
                      Now = state(Peer),
                      [{Key, {before, maps:get(Key, Before)}, {now, maps:get(Key, Now)}}
                       || Key <- maps:keys(Before) -- Except,
                          not same(Key, maps:get(Key, Before), maps:get(Key, Now), Except)]
              end,
    until(fun() -> Differs() =:= [] end, {as_before, Differs}).

%% With a connection that stays, so do its process, port and descriptor.
same(Key, Before, Now, [connected]) when Key =:= ports; Key =:= descriptors; Key =:= processes;
                                         Key =:= ets ->
    count(Now) - count(Before) =< 1;
same(_, Before, Now, _) ->
    Before =:= Now.

count(List) when is_list(List) -> length(List);
count(N) -> N.

%% Longer than a scheduler is blocked here, and than an attempt waits after one that failed.
until(Condition, What) ->
    until(Condition, What, erlang:monotonic_time(millisecond) + 45000).

until(Condition, What, Limit) ->
    case Condition() of
        true -> ok;
        false ->
            case erlang:monotonic_time(millisecond) > Limit of
                true -> error({never, explained(What)});
                false -> timer:sleep(100), until(Condition, What, Limit)
            end
    end.

explained({What, Fun}) when is_function(Fun) -> {What, Fun()};
explained({What, Which, Fun}) when is_function(Fun) -> {What, Which, Fun()};
explained(What) -> What.

contains(Text, Part) ->
    case string:find(Text, Part) of
        nomatch -> error({not_there, Part, Text});
        _ -> ok
    end.
