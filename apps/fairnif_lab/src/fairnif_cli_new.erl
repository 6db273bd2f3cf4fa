%% The command `fairnif new': writes a project with a NIF on fairnif.
%%
%% The project is a folder of priv/templates, a working one named my_nif: copied, with the name put
%% in and the dependencies on fairnif filled in. It never writes into a directory that was there.
-module(fairnif_cli_new).

-include_lib("kernel/include/file.hrl").

-export([options/0, run/2, valid/1]).

-type source() :: git | hex | {checkout, file:filename()}.

-define(REPOSITORY, "https://github.com/fairnif/fairnif.git").
-define(BRANCH, "main").
%% The name that the templates have, in texts and in names of files.
-define(PLACEHOLDER, "my_nif").
-define(APPS, [fairnif, fairnif_lab, rebar3_fairnif]).
%% Some file systems take no longer names, with what is put after them.
-define(LONGEST, 100).

%% @doc The options of the command: name, key, how the text becomes a value.
-spec options() -> [tuple()].
options() ->
    [{"--elixir", template, {flag, elixir}},
     {"--fairnif", fairnif, fun source/1}].

-spec source(string()) -> source().
source("git") -> git;
source("hex") -> hex;
source(Dir) ->
    case is_checkout(Dir) of
        true -> {checkout, filename:absname(Dir)};
        false -> fairnif_cli_text:usage("`--fairnif' takes git, hex, or the directory of a "
                                        "checkout of fairnif: `~ts' is none", [Dir])
    end.

%% @doc Writes the project `Name' into the current directory and says what to do with it. Exit code
%% 0, or 1 when something could not be written; then nothing is left of it.
-spec run(string(), map()) -> 0 | 1.
run(Name, Opts) ->
    case valid(Name) of
        ok -> ok;
        {error, Why} -> fairnif_cli_text:usage("`~ts' cannot be the project's name: ~ts",
                                               [Name, Why])
    end,
    Template = template(maps:get(template, Opts, rebar3)),
    Source = maps:get(fairnif, Opts, default_source()),
    %% Making it is also the test whether it is there: nobody comes between.
    case file:make_dir(Name) of
        ok ->
            try
                Files = [write(Template, File, Name, Source) || File <- files(Template)],
                link(Name, Source),
                io:format("~ts~n", [done(Name, Files, Source)]),
                0
            catch
                throw:{cannot_write, File, Reason} ->
                    _ = file:del_dir_r(Name),
                    fairnif_cli_text:complain(cannot_write(File, Reason)),
                    1
            end;
        {error, eexist} ->
            fairnif_cli_text:usage("`~ts' is there already; nothing was written", [Name]);
        {error, Reason} ->
            fairnif_cli_text:complain(cannot_write(Name, Reason)),
            1
    end.

%% @doc Whether an application, its module and its library can have this name, and why not.
-spec valid(string()) -> ok | {error, string()}.
valid(Name) ->
    Form = re:run(Name, "^[a-z][a-z0-9_]*\\z", [{capture, none}]),
    Atom = Form =:= match andalso length(Name) =< ?LONGEST andalso list_to_atom(Name),
    case Atom of
        false when Form =:= match -> {error, "it is too long"};
        false -> {error, "a name is a small letter, then small letters, digits and _"};
        _ ->
            case {erl_scan:reserved_word(Atom) orelse lists:member(Atom, ['maybe', 'else']),
                  code:where_is_file(Name ++ ".beam")} of
                {true, _} -> {error, "it is a word of Erlang's own"};
                {false, non_existing} -> taken(Atom);
                {false, _} -> {error, "there is a module of that name, of Erlang/OTP or fairnif"}
            end
    end.

taken(Atom) ->
    case code:lib_dir(Atom) of
        {error, bad_name} -> ok;
        _ -> {error, "there is an application of that name, of Erlang/OTP or fairnif"}
    end.

%% ---- templates ----

template(Kind) ->
    Dir = filename:join([code:priv_dir(fairnif_lab), "templates", Kind]),
    filelib:is_dir(Dir)
        orelse fairnif_cli_text:usage("there is no template for ~ts projects", [Kind]),
    Dir.

files(Template) ->
    [File || File <- filelib:wildcard("**", Template),
             filelib:is_regular(filename:join(Template, File))].

write(Template, File, Name, Source) ->
    {ok, Text} = file:read_file(filename:join(Template, File)),
    {ok, #file_info{mode = Mode}} = file:read_file_info(filename:join(Template, File)),
    To = filename:join(Name, target(File, Name)),
    must(To, filelib:ensure_dir(To)),
    must(To, file:write_file(To, fill(Text, Name, Source))),
    must(To, file:change_mode(To, Mode)),
    To.

%% A file of the templates whose name would begin with a dot begins with `dot.' instead: neither git
%% nor a package overlooks it.
target(File, Name) ->
    Parts = [case Part of
                 "dot" ++ ("." ++ _ = Dotted) -> Dotted;
                 _ -> Part
             end || Part <- filename:split(File)],
    lists:flatten(string:replace(filename:join(Parts), ?PLACEHOLDER, Name, all)).

fill(Text, Name, Source) ->
    Filled = [{"{{" ++ atom_to_list(App) ++ "}}", dependency(App, Source)} || App <- ?APPS]
        ++ [{"{{where}}", where(Source)}, {?PLACEHOLDER, Name}],
    lists:foldl(fun({From, To}, T) -> string:replace(T, From, To, all) end, Text, Filled).

%% ---- where fairnif comes from ----

%% The checkout that this code was built in, if it was.
default_source() ->
    case [Dir || Dir <- upwards(code:lib_dir(fairnif_lab)), is_checkout(Dir)] of
        [Dir | _] -> {checkout, Dir};
        [] -> git
    end.

upwards(Dir) ->
    case filename:dirname(Dir) of
        Dir -> [];
        Parent -> [Parent | upwards(Parent)]
    end.

is_checkout(Dir) ->
    lists:all(fun(App) -> filelib:is_regular(filename:join([Dir, "apps", App, "rebar.config"])) end,
              ?APPS).

%% A term of rebar.config.
-spec dependency(atom(), source()) -> iolist().
dependency(App, hex) ->
    io_lib:format("{~s, \"~~> ~s\"}", [App, version()]);
dependency(App, _) ->
    io_lib:format("{~s,~n        {git_subdir, \"~s\", {branch, \"~s\"}, \"apps/~s\"}}",
                  [App, ?REPOSITORY, ?BRANCH, App]).

version() ->
    _ = application:load(fairnif_lab),
    {ok, Version} = application:get_key(fairnif_lab, vsn),
    Version.

where({checkout, _}) ->
    "fairnif is the dependency that rebar.config names. On the machine where this project was\n"
    "made `_checkouts` links to a checkout of it, which rebar3 takes instead; remove that folder\n"
    "to build as everybody else does.";
where(_) ->
    "fairnif is the dependency that rebar.config names.".

link(Name, {checkout, Dir}) ->
    [begin
         Link = filename:join([Name, "_checkouts", App]),
         must(Link, filelib:ensure_dir(Link)),
         must(Link, file:make_symlink(filename:join([Dir, "apps", App]), Link))
     end || App <- ?APPS],
    ok;
link(_, _) ->
    ok.

%% ---- what is said ----

done(Name, Files, Source) ->
    ["Written:\n", [["  ", File, $\n] || File <- lists:sort(Files)],
     case Source of
         {checkout, Dir} -> ["  ", Name, "/_checkouts, links to ", Dir, $\n];
         _ -> []
     end,
     "\nTo build it, test it, and see whether its NIF is well-behaved:\n"
     "  cd ", Name, "\n  make\n  make test\n  make check"].

must(_, ok) -> ok;
must(File, {error, Reason}) -> throw({cannot_write, File, Reason}).

cannot_write(File, Reason) ->
    io_lib:format("cannot write ~ts: ~ts", [File, file:format_error(Reason)]).
