%% Asks what a culprit is: the process, the drivers and modules loaded.
%%
%% Such a question waits until the process asked is out of native code, so each is asked by a
%% process of its own that is killed when it takes too long, and few are under way at once. Must
%% never be asked in the collector.
-module(fairnif_watch_ask).

-export([new/0, start/3, down/2, expire/1, stop/1]).

-export_type([asks/0]).

-define(AT_ONCE, 5).
-define(TIMEOUT_MS, 2000).

-opaque asks() :: #{reference() => {pid(), Since :: integer()}}.

%% @doc No process is being asked.
-spec new() -> asks().
new() -> #{}.

%% @doc Asks about the culprit of a finding, unless five are being asked: `new' asks only what needs
%% no answer of the process. The caller is sent `{fairnif_watch_asked, FindingId, Facts}'.
-spec start(new | ended, fairnif_watch_finding:finding(), asks()) -> asks().
start(What, #{id := Id, detector := scheduler_blocked, culprit := Culprit}, Asks)
  when map_size(Asks) < ?AT_ONCE ->
    Collector = self(),
    Ask = fun() -> Collector ! {fairnif_watch_asked, Id, facts(What, Culprit)} end,
    {Pid, Ref} = spawn_monitor(Ask),
    Asks#{Ref => {Pid, erlang:monotonic_time(millisecond)}};
start(_, _, Asks) ->
    Asks.

%% @doc A process asking has ended.
-spec down(reference(), asks()) -> asks().
down(Ref, Asks) ->
    maps:remove(Ref, Asks).

%% @doc Kills what has waited for two seconds; its caller gets `timeout' in place of facts.
-spec expire(asks()) -> ok.
expire(Asks) ->
    Late = erlang:monotonic_time(millisecond) - ?TIMEOUT_MS,
    maps:foreach(fun(_, {Pid, Since}) when Since < Late ->
                         self() ! {fairnif_watch_asked, 0, timeout},
                         exit(Pid, kill);
                    (_, _) ->
                         true
                 end, Asks).

%% @doc Kills all.
-spec stop(asks()) -> ok.
stop(Asks) ->
    maps:foreach(fun(_, {Pid, _}) -> exit(Pid, kill) end, Asks).

facts(new, Culprit) ->
    library(Culprit);
facts(ended, #{pid := Pid} = Culprit) ->
    maps:merge(library(Culprit), process(Pid)).

process(Pid) when is_pid(Pid), node(Pid) =:= node() ->
    Items = [registered_name, current_function, current_stacktrace, initial_call],
    case erlang:process_info(Pid, Items) of
        undefined ->
            #{};
        Info ->
            Known = maps:from_list(Info),
            Registered = case Known of
                             #{registered_name := Name} when is_atom(Name) -> Name;
                             #{} -> none
                         end,
            #{registered => Registered,
              current_function => function(maps:get(current_function, Known)),
              initial_call => function(maps:get(initial_call, Known)),
              current_stacktrace => [function(MFA) || MFA <- lists:sublist(stack(Known), 8)]}
    end;
process(_) ->
    #{}.

stack(#{current_stacktrace := Stack}) -> [{M, F, A} || {M, F, A, _} <- Stack].

function({M, F, A}) when is_integer(A) -> {M, F, A};
function({M, F, A}) when is_list(A) -> {M, F, length(A)};
function(_) -> none.

%% Which module loaded the library: certain where the nif table named it, or where only one module
%% that has NIFs stands in the application whose priv directory holds the file.
library(#{module := none, library := Library}) when is_binary(Library) ->
    {ok, Drivers} = erl_ddll:loaded_drivers(),
    Known = #{drivers => [list_to_binary(Driver) || Driver <- Drivers]},
    case candidates(Library) of
        [] -> Known;
        [Module] -> Known#{module => Module};
        Many -> Known#{candidates => lists:sublist(Many, 8)}
    end;
library(_) ->
    #{}.

candidates(Library) ->
    Base = filename:basename(Library, ".so"),
    WithNifs = [M || M <- erlang:loaded(), has_nifs(M)],
    case [M || M <- WithNifs, atom_to_binary(M) =:= Base] of
        [Module] ->
            [Module];
        [] ->
            App = app(filename:split(Library)),
            [M || M <- WithNifs, App =/= none, app(path(code:which(M))) =:= App]
    end.

has_nifs(Module) ->
    try erlang:get_module_info(Module, nifs) of
        Nifs -> Nifs =/= []
    catch error:_ -> false
    end.

path(File) when is_list(File) -> filename:split(list_to_binary(File));
path(_) -> [].

%% The directory above priv or ebin.
app(Path) ->
    case lists:splitwith(fun(Part) -> Part =/= <<"priv">> andalso Part =/= <<"ebin">> end, Path) of
        {App, [_ | _]} -> App;
        _ -> none
    end.
