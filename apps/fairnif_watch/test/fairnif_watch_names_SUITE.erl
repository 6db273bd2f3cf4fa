%% Who blocks a scheduler is named, and named right: NIFs of OTP, of other people's packages, in C++
%% and in Rust, with symbols and without.
%%
%% A case for each, in a peer of two schedulers. Not one of its findings may have another name, or
%% say another one in its sentence. WATCH_NAMES=1000 blocks 1000 times (`make soak' does). What is
%% not installed is skipped, and said; so is a machine too busy for most calls to be seen.
-module(fairnif_watch_names_SUITE).


-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([every_hold_has_the_right_name/1]).

-define(TIMES, 20).
%% Of the calls: on a busy machine others are starved, which is true and no name.
-define(SEEN, 0.5).

suite() ->
    [{timetrap, {minutes, 15}}].

all() -> [{group, group(Subject)} || {Subject, _, _} <- fairnif_watch_test_names:subjects()].

groups() -> [{group(Subject), [every_hold_has_the_right_name]}
             || {Subject, _, _} <- fairnif_watch_test_names:subjects()].

group({Module, Variant}) -> list_to_atom(atom_to_list(Module) ++ Variant);
group(Name) -> Name.

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    {_, Output} = fairnif_watch_test:make("names"),
    ct:log("~ts", [Output]),
    Config.

end_per_suite(_) -> ok.

init_per_group(Group, Config) ->
    [{subject, Row}] = [{subject, Row} || {Subject, _, _} = Row
                                              <- fairnif_watch_test_names:subjects(),
                                          group(Subject) =:= Group],
    case Row of
        {pbkdf2, _, _} ->
            case list_to_integer(erlang:system_info(otp_release)) < 27 of
                true -> [{subject, Row} | Config];
                false -> {skip, "OTP 27 and newer derive keys on dirty schedulers"}
            end;
        {_, none, _} ->
            [{subject, Row} | Config];
        {_, Module, _} ->
            case code:which(Module) of
                non_existing -> {skip, io_lib:format("~s is not installed", [Module])};
                _ -> [{subject, Row} | Config]
            end
    end.

end_per_group(_, _) -> ok.

every_hold_has_the_right_name(Config) ->
    {Subject, _, Right} = proplists:get_value(subject, Config),
    Times = fairnif_test:env_number("WATCH_NAMES", ?TIMES),
    %% Schedulers that spin for work use processor time, by which the calls are sized.
    Peer = fairnif_watch_test:peer(["+S", "2:2", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio",
                                    "none"]),
    Said = fairnif_watch_test:call(Peer, fairnif_watch_test_names, run,
                                   [Subject, fairnif_watch_test:out_dir(), Times], 800000),
    fairnif_watch_test:stop(Peer),
    case Said of
        {skip, _} ->
            Said;
        #{names := Names, differ := Differ, symbols := Symbols} ->
            Named = maps:get(Right, Names, 0),
            ct:pal("~ts: ~b calls, ~b findings with this name, others: ~0tp",
                   [Right, Times, Named, maps:remove(Right, Names)]),
            ?assertEqual(#{}, maps:remove(Right, Names)),
            ?assertEqual([], Differ),
            readable(Subject, Symbols),
            judged(Named, Times)
    end.

judged(Named, Times) when Named < ?SEEN * Times ->
    {skip, io_lib:format("this machine is too busy: ~b of ~b calls seen", [Named, Times])};
judged(Named, Times) ->
    {comment, io_lib:format("~b of ~b calls seen, all with the right name", [Named, Times])}.

%% As their sources have them, where there are symbols and a finding.
readable({fairnif_watch_block_rust, ""}, [_ | _] = Symbols) ->
    ?assert(lists:member(<<"fairnif_watch_block_rust::work">>, Symbols), Symbols);
readable({fairnif_watch_block_cpp, ""}, [_ | _] = Symbols) ->
    Inside = [S || <<"(anonymous namespace)::spin", _/binary>> = S <- Symbols],
    ?assert(Inside =/= [] orelse erlang:system_info(emu_flavor) =/= jit, Symbols);
readable(_, _) ->
    ok.
