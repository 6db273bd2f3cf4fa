%% The command `fairnif new': writes a project with a NIF on fairnif.
%%
%% The project is two folders of priv/templates, of its build tool and of its language, which make a
%% working one named my_nif: copied, with the name put in and the dependencies on fairnif filled
%% in. It never writes into a directory that was there.
-module(fairnif_cli_new).

-include_lib("kernel/include/file.hrl").

-export([command/0, valid/2]).

-type source() :: git | hex | {checkout, file:filename()}.

-define(REPOSITORY, "https://github.com/fairnif/fairnif.git").
-define(BRANCH, "main").
%% Of packages on Hex.
-define(REQUIREMENT, "~> 1.0-rc").
%% The name that the templates have, in texts and in names of files.
-define(PLACEHOLDER, "my_nif").
%% The same as a module of Elixir.
-define(MODULE_PLACEHOLDER, "MyNif").
-define(APPS, [fairnif, fairnif_check, rebar3_fairnif]).
%% Some file systems take no longer names, with what is put after them.
-define(LONGEST, 100).

%% @doc The command.
-spec command() -> fairnif_check_cli:command().
command() ->
    #{name => "new",
      args => "NAME [--elixir] [--cpp|--rust] [--precompiled] [--fairnif git|hex|DIR]",
      about => "writes a new project with a NIF on fairnif",
      options =>
          [{"--elixir", template, {flag, elixir}, "", "a Mix project instead of one for rebar3"},
           {"--cpp", language, {flag, cpp}, "", "the NIF in C++ instead of C"},
           {"--rust", language, {flag, rust}, "", "the NIF in Rust, beside rustler"},
           {"--precompiled", precompiled, {flag, true}, "",
            "its own users need no compiler (C and C++)"},
           {"--fairnif", fairnif, fun source/1, "git|hex|DIR",
            "where fairnif comes from (default: this checkout, else git)"}],
      run => fun new/2}.

-spec source(string()) -> source().
source("git") -> git;
source("hex") -> hex;
source(Dir) ->
    case is_checkout(Dir) of
        true -> {checkout, filename:absname(Dir)};
        false -> fairnif_check_cli_text:usage("`--fairnif' takes git, hex, or the directory of a "
                                            "checkout of fairnif; `~ts' is none of them", [Dir])
    end.

new(Opts, [Name]) ->
    run(Name, Opts);
new(_, []) ->
    fairnif_check_cli_text:usage("new needs a name, that of the application", []);
new(_, [_, Arg | _]) ->
    fairnif_check_cli_text:usage("new takes one name: what is `~ts'?", [Arg]).

%% Writes the project `Name' into the current directory and says what to do with it. Exit code
%% 0, or 1 when something could not be written; then nothing is left of it.
run(Name, Opts) ->
    Kind = maps:get(template, Opts, rebar3),
    case valid(Name, Kind) of
        ok -> ok;
        {error, Why} -> fairnif_check_cli_text:usage("`~ts' cannot be the project's name: ~ts",
                                                   [Name, Why])
    end,
    Language = maps:get(language, Opts, c),
    Source = maps:get(fairnif, Opts, default_source()),
    Precompiled = maps:get(precompiled, Opts, false),
    [fairnif_check_cli_text:usage("--precompiled is for C and C++; the package rustler_precompiled "
                                  "is for Rust", []) || Precompiled, Language =:= rust],
    Fillings = fillings(Name, Kind, Language, Source) ++ precompiled(Precompiled, Kind, Name),
    %% Making it is also the test whether it is there: nothing comes between.
    case file:make_dir(Name) of
        ok ->
            try
                Files = [write(Template, File, Name, Fillings)
                         || {File, Template} <- files(templates(Kind, Language, Precompiled))],
                Links = [L || Kind =:= rebar3, L <- links(Source)],
                [symlink(filename:join([Name, "_checkouts", App]), To) || {App, To} <- Links],
                io:format("~ts~n", [done(Name, Files, Links, missing(Kind, Language))]),
                0
            catch
                throw:{cannot_write, File, Reason} ->
                    _ = file:del_dir_r(Name),
                    fairnif_check_cli_text:complain(cannot_write(File, Reason)),
                    1
            end;
        {error, eexist} ->
            fairnif_check_cli_text:usage("`~ts' is there already; nothing was written", [Name]);
        {error, Reason} ->
            fairnif_check_cli_text:complain(cannot_write(Name, Reason)),
            1
    end.

%% @doc Whether an application, its modules and its library can have this name, and why not.
-spec valid(string(), rebar3 | elixir) -> ok | {error, string()}.
valid(Name, Kind) ->
    Checks = [{fun has_form/1,
               "a name is a lower-case letter, then lower-case letters, digits and _"},
              {fun is_short/1, "it is too long"},
              {fun is_no_word/1, "it is a reserved word of Erlang"},
              {fun is_free/1, "Erlang/OTP or fairnif uses that name"}]
        ++ [{fun is_free_in_elixir/1, "Elixir has a module of that name"} || Kind =:= elixir],
    valid_by(Checks, Name).

valid_by([], _) -> ok;
valid_by([{Check, Why} | Checks], Name) ->
    case Check(Name) of
        true -> valid_by(Checks, Name);
        false -> {error, Why}
    end.

has_form(Name) ->
    re:run(Name, "^[a-z][a-z0-9_]*\\z", [{capture, none}]) =:= match.

is_short(Name) ->
    length(Name) =< ?LONGEST.

%% Of any release of Erlang.
is_no_word(Name) ->
    not (erl_scan:reserved_word(list_to_atom(Name)) orelse lists:member(Name, ["maybe", "else"])).

is_free(Name) ->
    code:where_is_file(Name ++ ".beam") =:= non_existing
        andalso code:lib_dir(list_to_atom(Name)) =:= {error, bad_name}.

%% Where there is no Elixir there is nothing to ask.
is_free_in_elixir(Name) ->
    case os:find_executable("elixir") of
        false ->
            true;
        Path ->
            Lib = filename:join(filename:dirname(filename:dirname(followed(Path))), "lib"),
            Beam = "Elixir." ++ elixir_module(Name) ++ ".beam",
            filelib:wildcard(filename:join([Lib, "*", "ebin", Beam])) =:= []
                andalso not filelib:is_dir(filename:join(Lib, Name))
    end.

followed(Path) ->
    case file:read_link(Path) of
        {ok, To} -> followed(filename:absname(To, filename:dirname(Path)));
        {error, _} -> Path
    end.

%% ---- templates ----

%% A language's own on top of its elder's.
templates(Kind, Language, Precompiled) ->
    [filename:join([code:priv_dir(fairnif_cli), "templates", Name])
     || Name <- [Kind] ++ [c || Language =:= cpp] ++ [Language] ++ [precompiled || Precompiled]].

%% A later template's files stand for those of the same name, whatever their extension.
files(Templates) ->
    lists:foldl(fun(Template, Before) ->
                        Files = [{File, Template} || File <- filelib:wildcard("**", Template),
                                                     is_file(Template, File)],
                        Names = [filename:rootname(File) || {File, _} <- Files],
                        [Old || {File, _} = Old <- Before,
                                not lists:member(filename:rootname(File), Names)] ++ Files
                end, [], Templates).

is_file(Template, File) ->
    filelib:is_regular(filename:join(Template, File)).

write(Template, File, Name, Fillings) ->
    {ok, Text} = file:read_file(filename:join(Template, File)),
    {ok, #file_info{mode = Mode}} = file:read_file_info(filename:join(Template, File)),
    To = filename:join(Name, target(File, Name)),
    must(To, filelib:ensure_dir(To)),
    must(To, file:write_file(To, fill(Text, Fillings))),
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

fill(Text, Fillings) ->
    unicode:characters_to_binary(
      lists:foldl(fun({From, To}, T) -> string:replace(T, From, To, all) end, Text, Fillings)).

%% The names first: a path may happen to hold a placeholder.
fillings(Name, Kind, Language, Source) ->
    [{"{{source}}", body_of(Language)}, {"{{language}}", written(Language)},
     {"{{module}}", module(Kind)},
     {?PLACEHOLDER, Name}, {?MODULE_PLACEHOLDER, elixir_module(Name)},
     {"{{requirement}}", ?REQUIREMENT}, {"{{from}}", from(Source)},
     {"{{count}}", count(Kind, Language)}, {"{{nif}}", nif(Language)},
     {"{{sources}}", sources(Language)},
     {"{{crate}}", crate(Source)}]
        ++ [{"{{" ++ atom_to_list(App) ++ "}}", dependency(App, Source)} || App <- ?APPS].

%% What the build tool's files say of libraries that are made before.
precompiled(false, _, _) ->
    [{"{{before}}", ""}, {"{{after}}", ""}, {"{{precompiled}}", ""}];
precompiled(true, Kind, Name) ->
    Environment = case Kind of
                      rebar3 -> "REBAR_DEPS_DIR=$(CURDIR)/_build/default/lib "
                                    "REBAR_CHECKOUTS_DIR=$(CURDIR)/_checkouts";
                      elixir -> "FAIRNIF_INCLUDE_DIR=\"$$($(MIX) run --no-start -e "
                                    "'IO.write(:fairnif.include_dir())')\""
                  end,
    [{"{{before}}", "sh -c 'test -f c_src/precompiled.config && escript c_src/precompiled || "},
     {"{{after}}", "'"},
     {"{{precompiled}}",
      ["\n# Archives for users without a compiler, and precompiled.config, which says that they\n"
       "# are at URL, in _build/precompiled. Needs Zig (pip install ziglang).\n"
       ".PHONY: precompiled\n"
       "precompiled: compile\n"
       "\t", Environment, " \\\n"
       "\t\tescript c_src/precompiled build ", Name, " $(VERSION) $(URL) $(TARGETS)\n"]}].

%% That the library belongs to.
module(rebar3) -> ?PLACEHOLDER;
module(elixir) -> "Elixir." ?MODULE_PLACEHOLDER.

%% The function that is registered: in C++ there is one in Erlang around it.
nif(cpp) -> "nif_count";
nif(_) -> "count".

count(rebar3, cpp) ->
    "count(Binary, Byte) ->\n"
    "    fairnif:with_error_info(fun nif_count/2, [Binary, Byte]).\n\n"
    "nif_count(_Binary, _Byte) ->\n"
    "    erlang:nif_error(not_loaded).";
count(rebar3, _) ->
    "count(_Binary, _Byte) ->\n"
    "    erlang:nif_error(not_loaded).";
count(elixir, cpp) ->
    "def count(binary, byte), do: :fairnif.with_error_info(&nif_count/2, [binary, byte])\n\n"
    "  @doc false\n"
    "  defnif nif_count(binary, byte)";
count(elixir, _) ->
    "defnif count(binary, byte)".

sources(rust) -> "native";
sources(_) -> "c_src".

written(c) -> "C";
written(cpp) -> "C++";
written(rust) -> "Rust".

body_of(c) -> "c_src/" ?PLACEHOLDER ".c";
body_of(cpp) -> "c_src/" ?PLACEHOLDER ".cpp";
body_of(rust) -> "native/src/lib.rs".

%% As Mix would: two_words is TwoWords.
elixir_module(Name) ->
    lists:append([string:titlecase(Word) || Word <- string:lexemes(Name, "_")]).

%% ---- where fairnif comes from ----

%% The checkout that this code was built in, if it was.
default_source() ->
    case [Dir || Dir <- upwards(code:lib_dir(fairnif_cli)), is_checkout(Dir)] of
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
    io_lib:format("{~s, \"~s\"}", [App, ?REQUIREMENT]);
dependency(App, _) ->
    io_lib:format("{~s,~n        {git_subdir, \"~s\", {branch, \"~s\"}, \"apps/~s\"}}",
                  [App, ?REPOSITORY, ?BRANCH, App]).

%% The same for mix.exs, in which a checkout counts only where it is.
-spec from(source()) -> iolist().
from({checkout, Dir}) -> io_lib:write_string(Dir);
from(Source) -> io_lib:format(":~s", [Source]).

%% The same for Cargo.toml.
-spec crate(source()) -> iolist().
crate({checkout, Dir}) -> io_lib:format("{ path = \"~ts/rust/fairnif\" }", [Dir]);
crate(git) -> io_lib:format("{ git = \"~s\", branch = \"~s\" }", [?REPOSITORY, ?BRANCH]);
crate(hex) ->
    _ = application:load(fairnif_check),
    {ok, Version} = application:get_key(fairnif_check, vsn),
    ["\"", Version, "\""].

%% rebar3 knows no dependency on a directory, but takes one from here.
links({checkout, Dir}) -> [{App, filename:join([Dir, "apps", App])} || App <- ?APPS];
links(_) -> [].

symlink(Link, To) ->
    must(Link, filelib:ensure_dir(Link)),
    must(Link, file:make_symlink(To, Link)).

%% ---- what is said ----

done(Name, Files, Links, Missing) ->
    ["Written:\n", [["  ", File, $\n] || File <- lists:sort(Files)],
     [["  ", Name, "/_checkouts/", atom_to_list(App), " -> ", To, $\n] || {App, To} <- Links],
     "\nTo build it, test it, and see whether its NIF is well-behaved:\n"
     "  cd ", Name, "\n  make\n  make test\n  make check",
     [["\nIt needs ", Tool, ", which is not in PATH."] || Tool <- Missing]].

%% What builds it and is not here.
missing(Kind, Language) ->
    [Tool || Tool <- tools(Kind, Language), os:find_executable(Tool) =:= false].

tools(rebar3, c) -> ["rebar3", "make", "cc"];
tools(elixir, c) -> ["mix", "make", "cc"];
tools(Kind, cpp) -> tools(Kind, c) ++ ["g++"];
tools(Kind, rust) -> tools(Kind, c) ++ ["cargo"].

must(_, ok) -> ok;
must(File, {error, Reason}) -> throw({cannot_write, File, Reason}).

cannot_write(File, Reason) ->
    io_lib:format("cannot write ~ts: ~ts", [File, file:format_error(Reason)]).
