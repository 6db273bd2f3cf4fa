%% The examples and the packages, judged by the checker as their users would: every fair function is
%% well-behaved, and the plain NIF beside it, which does the same work, is not.
%%
%% `make examples packages' has built them.
-module(fairnif_check_examples_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([bitwise/1, cleanup/1, driver/1, json/1, levenshtein/1, lists/1, lua/1, rust_doc/1,
         rust_markdown/1, sodium/1, spinsleep/1, sqlite/1, xml/1, zstd/1,
         a_pending_value_is_judged_where_the_expression_awaits_it/1,
         plain_nifs_are_not/1]).

-define(TIME_MS, 200).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    case filelib:wildcard(filename:join(root(?FILE),
                                        "{examples,packages}/_build/default/lib/*/ebin")) of
        [] -> ct:fail("they are not built: make examples packages");
        Paths -> [{paths, Paths} | Config]
    end.

end_per_suite(_) ->
    ok.

bitwise(Config) ->
    well_behaved(Config, "bitwise:exor(Bin, 90)", #{sizes => [16777216]}),
    well_behaved(Config, "bitwise:exor_dirty_yield(Bin, 90)", #{sizes => [16777216]}),
    well_behaved(Config, "bitwise:exor_threaded(Bin, 90)", on_threads(#{sizes => [16777216]})).

%% Objects that wait 5 ms when no term refers to them any more. They are cleaned up after the kill,
%% one after the other, and take memory until then.
cleanup(Config) ->
    Opts = #{sizes => [1024]},
    not_well_behaved(Config, "cleanup:plain(waits, 5000)", Opts, [destructor]),
    well_behaved(Config, "cleanup:fair(waits, 5000)",
                 Opts#{waive => #{leak => "what is not cleaned up yet is no leak"}}).

%% A port driver's callbacks of 50 ms: put off they are well-behaved, in place they are not.
%% Threads compete with the schedulers for the cores, as those of dirty NIFs do.
driver(Config) ->
    Size = #{sizes => [1024]},
    Cores = Size#{waive => #{latency => "the cores are shared with threads"}},
    [begin
         Call = fun(F) -> io_lib:format("driver_example:~s(~s, 50000)", [Callback, F]) end,
         not_well_behaved(Config, Call(blocking), Size, [block]),
         well_behaved(Config, Call(Form), Opts)
     end || {Callback, Form, Opts} <- [{control, normal, Size}, {call, dirty_cpu, Cores},
                                       {outputv, dirty_io, Cores}]].

%% A document of 8 MB, and what it stands for.
json(Config) ->
    Numbers = "iolist_to_binary([$[, lists:join($,, [integer_to_list(I) || I <- lists:seq(1, N)]),"
              " $]])",
    [well_behaved(Config, Call, #{init => Init, sizes => [1000000]})
     || {Call, Init} <- [{"simdjson:decode(Init)", Numbers},
                         {"simdjson:encode(Init)", "lists:seq(1, N)"}]].

levenshtein(Config) ->
    Init = #{init => "{binary:copy(<<0>>, N), binary:copy(<<1>>, N)}", sizes => [4096]},
    Call = "begin {A, B} = Init, levenshtein:~s(A, B) end",
    [well_behaved(Config, io_lib:format(Call, [F]), Init)
     || F <- [levenshtein, yielding_levenshtein]],
    well_behaved(Config, io_lib:format(Call, [threaded_levenshtein]), on_threads(Init)).

lists(Config) ->
    [well_behaved(Config, Call, #{init => "lists:reverse(lists:seq(1, N))", sizes => [300000]})
     || Call <- ["big_lists:sum(Init)", "big_lists:sort(Init)"]].

%% A call into the crate cannot be stopped.
rust_doc(Config) ->
    rust(Config, "rust_doc",
         fun() ->
                 Init = "begin Doc = rust_doc:new(), "
                        "[rust_doc:insert(Doc, 0, <<\"x\">>) || _ <- lists:seq(1, N)], Doc end",
                 Opts = #{init => Init, sizes => [100000],
                          waive => #{unkillable => "a crate's call cannot be stopped"}},
                 well_behaved(Config, "rust_doc:encode(Init)", Opts),
                 not_well_behaved(Config, "rust_doc:plain_encode(Init)", Opts, [block, undercharge])
         end).

%% That the crate finds the blocks in one go, on a dirty scheduler, is what cannot be stopped.
rust_markdown(Config) ->
    rust(Config, "rust_markdown",
         fun() ->
                 Init = "binary:copy(<<\"# A\\n\\nA *b* [c](/d).\\n\\n- e\\n\\n\">>, N div 26)",
                 Opts = #{init => Init, sizes => [1048576],
                          waive => #{unkillable => "a crate's call cannot be stopped"}},
                 well_behaved(Config, "rust_markdown:to_html(Init)", Opts),
                 not_well_behaved(Config, "rust_markdown:plain_to_html(Init)", Opts,
                                  [block, undercharge])
         end).

rust(Config, Name, Case) ->
    case [P || P <- ?config(paths, Config), string:find(P, Name) =/= nomatch] of
        [] -> {skip, "there is no Rust for it"};
        _ -> Case()
    end.

%% A box of libsodium is one call into a library: fair_offload takes it to a dirty scheduler when it
%% is long, and nothing stops it there before its end.
sodium(Config) ->
    well_behaved(Config, "begin {Nonce, Key} = Init, sodium:crypto_secretbox(Bin, Nonce, Key) end",
                 #{init => "{crypto:strong_rand_bytes(24), crypto:strong_rand_bytes(32)}",
                   sizes => [16777216],
                   waive => #{unkillable => "a library's call cannot be stopped"}}).

spinsleep(Config) ->
    [well_behaved(Config, io_lib:format("spinsleep:~s(N)", [F]), #{sizes => [30000]})
     || F <- [spinsleep_fair, spinwork_fair_yield, spinwork_fair_dirty_yield]],
    well_behaved(Config, "spinsleep:spinsleep_threaded(N)", on_threads(#{sizes => [30000]})).

%% A query that counts, one whose rows are many, a sort (which goes to a dirty scheduler and cannot
%% be stopped there), a script.
sqlite(Config) ->
    Numbers = "with recursive c(x) as (select 1 union all select x + 1 from c where x < \", "
              "integer_to_list(N), \") ",
    Query = fun(Select) ->
                    #{sizes => [100000],
                      init => ["begin {ok, C} = sqlite:open(\":memory:\"), "
                               "{ok, S} = sqlite:prepare(C, [\"", Numbers, Select, "\"]), "
                               "{C, S} end"]}
            end,
    Call = "begin {C, S} = Init, {ok, _} = sqlite:~s(C, S) end",
    Fair = io_lib:format(Call, [fetch_all]),
    well_behaved(Config, Fair, Query("select count(*), max(x) from c")),
    well_behaved(Config, Fair, Query("select x, 'a text' from c")),
    Sort = Query("select max(y) from (select row_number() over (order by -(x % 7919)) y from c)"),
    well_behaved(Config, Fair, Sort#{waive => #{unkillable => "a sort cannot be stopped",
                                                latency => "the cores are shared with threads"}}),
    well_behaved(Config, ["begin {C, _} = Init, ok = sqlite:execute(C, [\"", Numbers,
                          "select max(x) from c\"]) end"], Query("select x from c")),
    not_well_behaved(Config, io_lib:format(Call, [plain_fetch_all]),
                     Query("select count(*), max(x) from c"), [block, undercharge]).

%% A state for each call: a killed caller's is of no more use.
lua(Config) ->
    Script = "<<\"local t = {} for i = 1, \", (integer_to_binary(N))/binary, "
             "\" do t[i % 1000] = {i} end return (('a'):rep(200)):gsub('a-a-a-b', '')\">>",
    Opts = #{init => Script, sizes => [1000000]},
    well_behaved(Config, "begin {ok, S} = luajit:new(), {ok, _} = luajit:eval(S, Init) end",
                 Opts#{waive => #{latency => "a large collection is on a dirty scheduler"}}),
    not_well_behaved(Config, "{ok, _} = luajit:plain_eval(Init)", Opts, [block, undercharge]).

%% A document of 4 MB, and what it stands for. What the plain one leaves to be collected is charged.
xml(Config) ->
    Document = "iolist_to_binary([\"<list>\", [[\"<item id='\", integer_to_list(I),"
               " \"'><name>a &amp; b</name></item>\"] || I <- lists:seq(1, N)], \"</list>\"])",
    Opts = #{init => Document, sizes => [80000]},
    Tree = Opts#{init => "expat:parse(" ++ Document ++ ")"},
    [well_behaved(Config, Call, With) || {Call, With} <- [{"expat:parse(Init)", Opts},
                                                         {"expat:to_binary(Init)", Tree}]],
    [not_well_behaved(Config, Call, With, [block])
     || {Call, With} <- [{"expat:plain_parse(Init)", Opts}, {"expat:plain_to_binary(Init)", Tree}]].

zstd(Config) ->
    Init = #{init => "binary:copy(<<\"{ok, Pid} = scheduler:link(process) \">>, N div 38)",
             sizes => [16777216]},
    Frame = Init#{init => "zstandard:compress(rand:bytes(N))"},
    [well_behaved(Config, Call, Opts) || {Call, Opts} <- [{"zstandard:compress(Init)", Init},
                                                         {"zstandard:decompress(Init)", Frame}]],
    not_well_behaved(Config, "zstandard:plain_compress(Init, 3)", Init, [block, undercharge]).

%% The NIF itself answers a pending value; wrapped in the expression it is judged like any other.
a_pending_value_is_judged_where_the_expression_awaits_it(Config) ->
    well_behaved(Config, "fairnif:await(spinsleep:nif_spinwork_threaded(N))",
                 on_threads(#{sizes => [20000]})).

%% They compute there: the operating system shares out the cores, by milliseconds.
on_threads(Opts) ->
    Opts#{waive => #{latency => "the pool's threads compete with the schedulers"}}.

plain_nifs_are_not(Config) ->
    [not_well_behaved(Config, Call, Opts, [block, undercharge])
     || {Call, Opts} <- [{"bitwise:exor_bad(Bin, 90)", #{sizes => [67108864]}},
                         {"spinsleep:spinsleep(N)", #{sizes => [20000]}}]].

%% ---- help ----

well_behaved(Config, Expression, Opts) ->
    ok = fairnif_check:assert_well_behaved(Expression, options(Config, Opts)).

not_well_behaved(Config, Expression, Opts, Properties) ->
    {ok, #{exit := Exit, subjects := [#{verdicts := Verdicts}]}} =
        fairnif_check_run:run(Expression, options(Config, Opts)),
    Failed = [P || #{property := P, status := fail} <- Verdicts],
    case {Exit, Properties -- Failed} of
        {1, []} -> ok;
        _ -> ct:fail({Expression, Verdicts})
    end.

options(Config, Opts) ->
    Opts#{time_ms => ?TIME_MS, paths => ?config(paths, Config)}.

root(File) ->
    case filelib:is_dir(filename:join(File, "examples")) of
        true -> File;
        false when File =/= "/" -> root(filename:dirname(File))
    end.
