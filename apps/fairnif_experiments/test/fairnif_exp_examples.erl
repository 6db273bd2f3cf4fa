%% What experiments run and is not part of the checker, in the code path of a test: the examples,
%% which `make tests' builds, and the web server that tools/cowboy fetches.
-module(fairnif_exp_examples).

-export([with/1, root/0]).

%% Tests, or a generator's, with all of that in the code path.  Builds of examples
%% hold copies of fairnif: this repository's stay first.
with(Tests) ->
    {setup,
     fun() ->
             Dirs = [Dir || Pattern <- ["examples/_build/test/lib/*/ebin",
                                        "_build/cowboy/*/ebin"],
                            Dir <- filelib:wildcard(filename:join(root(), Pattern)),
                            not lists:member(filename:basename(filename:dirname(Dir)),
                                             ["fairnif", "fairnif_check"])],
             ok = code:add_pathsz(Dirs),
             Dirs
     end,
     fun(Dirs) -> [code:del_path(Dir) || Dir <- Dirs] end,
     Tests}.

%% The repository.
root() ->
    filename:join([code:lib_dir(fairnif_check), "..", "..", "..", ".."]).
