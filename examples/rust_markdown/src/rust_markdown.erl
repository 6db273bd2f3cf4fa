%% Markdown (CommonMark, with tables and ~~strikethrough~~) to HTML, by the crate pulldown-cmark.
%%
%% One code in three forms, which differ only in how they share the VM. All take UTF-8 and raise
%% badarg for anything else.
-module(rust_markdown).

-export([to_html/1, plain_to_html/1, dirty_to_html/1]).

-nifs([nif_to_html/1, nif_to_html_long/1, plain_to_html/1, dirty_to_html/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() -> ?FAIRNIF_LOAD.

%% The one to use: starts at once, yields when its slice is up. A text with a long paragraph goes
%% to a dirty scheduler, and yields there.
-spec to_html(unicode:unicode_binary()) -> unicode:unicode_binary().
to_html(Text) ->
    case nif_to_html(Text) of
        nil -> nif_to_html_long(Text);
        Html -> Html
    end.

nif_to_html(_Text) ->
    erlang:nif_error(not_loaded).

nif_to_html_long(_Text) ->
    erlang:nif_error(not_loaded).

%% A plain NIF of rustler's: holds its scheduler to the end. Here to be measured against.
-spec plain_to_html(unicode:unicode_binary()) -> unicode:unicode_binary().
plain_to_html(_Text) ->
    erlang:nif_error(not_loaded).

%% The same on a dirty CPU scheduler.
-spec dirty_to_html(unicode:unicode_binary()) -> unicode:unicode_binary().
dirty_to_html(_Text) ->
    erlang:nif_error(not_loaded).
