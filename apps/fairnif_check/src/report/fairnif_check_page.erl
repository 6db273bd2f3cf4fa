%% The report page: what `--html FILE' writes.
%%
%% The page is built from page/ into one file, priv/page/report.html, which is complete but for the
%% reports: scripts, styles, no network. Reports go in as the JSON text that they are, in place of a
%% mark. They hold texts that users typed: nothing in them may end the script element around them,
%% and nothing here may turn them into anything but JSON.
-module(fairnif_check_page).

-export([template/0, template/1, page/2, write/2, read/1]).

-type template() :: {Before :: binary(), After :: binary()}.

%% What the built page has once, where the reports go; page/index.html has it.
-define(MARK, <<"<!--fairnif-reports-->">>).
%% What fairnif_check_report and fairnif_experiment write.
-define(SCHEMA_VERSION, <<"1">>).

%% @doc The page before and after the place of the reports. An error says how it is built.
-spec template() -> {ok, template()} | {error, unicode:chardata()}.
template() ->
    template(filename:join([code:priv_dir(fairnif_check), "page", "report.html"])).

%% @private The same of the built page at this path.
-spec template(file:filename()) -> {ok, template()} | {error, unicode:chardata()}.
template(Path) ->
    case file:read_file(Path) of
        {ok, Page} ->
            case binary:split(Page, ?MARK, [global]) of
                [Before, After] -> {ok, {Before, After}};
                _ -> {error, [Path, " is not a page of this version: run `make page'"]}
            end;
        {error, Reason} ->
            {error, ["the report page is not built: run `make page' in fairnif's repository, which "
                     "needs Node.js 18 or newer and npm (", Path, ": ",
                     file:format_error(Reason), "). --json needs no page"]}
    end.

%% @doc Writes the page with these reports, each with the name that tells it from the other. Cost:
%% that of reading the texts once and writing them.
-spec write(file:filename(), [{Name :: unicode:chardata(), Json :: iodata()}]) ->
          ok | {error, unicode:chardata()}.
write(File, Reports) ->
    case template() of
        {ok, Template} ->
            case file:write_file(File, page(Template, Reports)) of
                ok -> ok;
                {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc The page with these reports in the place for them.
-spec page(template(), [{Name :: unicode:chardata(), Json :: iodata()}]) -> iodata().
page({Before, After}, Reports) ->
    [Before, [element(R) || R <- Reports], After].

%% In JSON a `<' stands in strings only, where it may be written like this. Without one neither
%% `</script' nor `<!--' is in the text.
element({Name, Json}) ->
    Text = [<<"{\"name\":">>, fairnif_check_json:encode(unicode:characters_to_binary(Name)),
            <<",\"report\":">>, Json, $}],
    [<<"<script type=\"application/json\" class=\"report\">">>,
     binary:replace(iolist_to_binary(Text), <<"<">>, <<"\\u003c">>, [global]),
     <<"</script>\n">>].

%% @doc The JSON text of a report that `--json' wrote. It is not parsed, which the page does, but
%% recognised: an error for another file, one that was cut off, and one of another version.
-spec read(file:filename()) -> {ok, binary()} | {error, unicode:chardata()}.
read(File) ->
    case file:read_file(File) of
        {ok, Json} ->
            case recognised(Json) of
                ok -> {ok, Json};
                {error, Text} -> {error, [File, Text]}
            end;
        {error, Reason} ->
            {error, ["cannot read ", File, ": ", file:format_error(Reason)]}
    end.

recognised(Json) ->
    Version = re:run(Json, "\\A\\s*\\{\\s*\"schema_version\"\\s*:\\s*([0-9]+)\\s*,",
                     [{capture, all_but_first, binary}]),
    Tail = binary:part(Json, byte_size(Json), -min(byte_size(Json), 100)),
    case {Version, re:run(Tail, "\\}\\s*\\z", [{capture, none}])} of
        {{match, [?SCHEMA_VERSION]}, match} -> ok;
        {{match, [?SCHEMA_VERSION]}, nomatch} -> {error, " is cut off"};
        {{match, [Other]}, _} -> {error, [" has version ", Other, ", and this fairnif reads ",
                                          ?SCHEMA_VERSION]};
        {nomatch, _} -> {error, " is not a report that --json has written"}
    end.
