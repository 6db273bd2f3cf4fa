%% This package beside jiffy and, where this Erlang has it, OTP's json: `bin/fairnif bench json
%% json_block json_delay' in fairnif's repository, which compiles this and nothing else does.
%%
%% What is not installed is not compared.  Each batch of calls has a process of its own with the
%% least heap; the document is a binary, and what is encoded a literal, outside of that heap.
-module(simdjson_bench).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [apart/4, interleave/2, late/3, merged/1, name/2]).

-define(BATCH_BYTES, 3000000).
-define(LARGE, 10000000).
-define(ROUNDS, 11).
-define(FEW_ROUNDS, 5).
-define(DELAY_ROUNDS, 7).
-define(DELAY_SIZE, 1000000).
-define(END_MS, 100).
-define(LOADS, 4).
-define(DIRECTIONS, [decode, encode]).
-define(SIZES, [1000, 10000, 100000, 1000000, ?LARGE, 50000000]).

%% @doc The runs.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [Run#{needs => [{simdjson, "json"}]} || Run <- [rates(), block(), delay()]].

%% Ns of a call, `FORM DIRECTION KIND SIZE'.  One that is a few kB is asked for less.
rates() ->
    #{id => json, flags => one, about => "JSON of 1 kB to 50 MB",
      samples => fun() ->
                         merged([series(Kind, Size) || Kind <- kinds(), Size <- ?SIZES])
                 end,
      all => #{unit => times, clock => cpu,
               how => "how many times as fast; calls for 3 MB of JSON in a process of their own "
                      "with the least heap, whose collections are part of it; CPU time of the "
                      "whole node with one scheduler"},
      rows => [#{id => name("json-~s-~s-~s-~b", [Direction, Peer, Kind, Size]),
                 what => name("~s of ~b kB of JSON (~s)", [Direction, Size div 1000, Kind]),
                 peer => atom_to_list(Peer), bound => bound(Direction, Peer, Size),
                 value => {speed, name("fair ~s ~s ~b", [Direction, Kind, Size]),
                           name("~s ~s ~s ~b", [Peer, Direction, Kind, Size])}}
               || Direction <- ?DIRECTIONS, Peer <- peers(), Kind <- kinds(), Size <- ?SIZES]}.

bound(decode, jiffy, Size) when Size >= 10000 -> {at_least, 2};
bound(_, _, _) -> none.

series(Kind, Size) ->
    {Term, Json} = document(Kind, Size),
    Calls = max(1, ?BATCH_BYTES div Size),
    Rounds = case Size >= ?LARGE of true -> ?FEW_ROUNDS; false -> ?ROUNDS end,
    interleave(Rounds, [apart(name("~s ~s ~s ~b", [Form, Direction, Kind, Size]), Calls,
                              call(Form, Direction, Json, Term), [])
                        || Direction <- ?DIRECTIONS, Form <- [fair | peers()]]).

%% The slices of both directions with 10 MB, and the longest of each round by the length that is
%% set.
block() ->
    #{id => json_block, flags => one, about => "how long JSON of 10 MB blocks a scheduler",
      samples => fun() ->
                         #{slice_ns := Slice} = Facts = maps:with([slice_ns], fairnif:info()),
                         {interleave(?FEW_ROUNDS,
                                     lists:append([slices(Kind, Slice) || Kind <- kinds()])), Facts}
                 end,
      rows => [Row || Direction <- ?DIRECTIONS, Kind <- kinds(),
                      What <- [name("~s of 10 MB of JSON (~s)", [Direction, Kind])],
                      Name <- [name("~s ~s", [Direction, Kind])],
                      Row <- [fairnif_exp_bench_slices:row(json_block, Name,
                                                           ["one slice of ", What]),
                              #{id => name("block-json_block-~s-~s-longest", [Direction, Kind]),
                                what => ["the longest slice of ", What], peer => "the slice set",
                                unit => times, value => {value, <<Name/binary, " longest">>},
                                how => "CPU time of the thread, of one call"}]]}.

slices(Kind, Slice) ->
    {Term, Json} = document(Kind, ?LARGE),
    [fun() ->
             Call = apart(<<>>, 1, call(fair, Direction, Json, Term), []),
             Slices = fairnif_exp_series:slices(MFA, Call),
             [{Name, Slices},
              {<<Name/binary, " longest">>, lists:max([Ns || {Ns, _} <- Slices]) / Slice}]
     end || {Direction, MFA} <- [{decode, {simdjson, nif_decode, 2}},
                                 {encode, {simdjson, nif_encode, 1}}],
            Name <- [name("~s ~s", [Direction, Kind])]].

%% A sleeper beside processes that decode 1 MB again and again, and (`erlang') beside Erlang that
%% makes the same terms: what it waits there it waits for the VM, whose collections are of the
%% caller's heap.
delay() ->
    #{id => json_delay, flags => two, about => "wake-up delays beside JSON",
      samples => fun delays/0,
      all => #{peer => "idle", unit => times,
               how => "p99 lateness of a 1 ms sleeper beside endless decoding of documents of "
                      "1 MB, 2 schedulers"},
      rows => [#{id => name("json-delay-~s", [Form]), bound => Bound,
                 what => name("wake-up delay beside 4 processes that decode, ~s", [Form]),
                 value => {ratio, atom_to_binary(Form), <<"idle">>}}
               || {Form, Bound} <- [{fair, {at_most, 1.2}}, {erlang, none}
                                    | [{Peer, none} || Peer <- peers()]]]}.

delays() ->
    Documents = [document(Kind, ?DELAY_SIZE) || Kind <- kinds()],
    Loads = [{<<"erlang">>, [fun() -> rebuilt(Term) end || {Term, _} <- Documents]}
             | [{atom_to_binary(Form), [call(Form, decode, Json, none) || {_, Json} <- Documents]}
                || Form <- [fair | peers()]]],
    %% No result outlives its call.
    Endless = fun(Calls) ->
                      fairnif_exp:forever(fun() -> lists:foreach(fun(C) -> C() end, Calls) end)
              end,
    interleave(?DELAY_ROUNDS,
               [late(<<"idle">>, [], ?END_MS)
                | [late(Name, lists:duplicate(?LOADS, fun() -> Endless(Calls) end), ?END_MS)
                   || {Name, Calls} <- Loads]]).

rebuilt(#{} = Map) -> maps:map(fun(_, Value) -> rebuilt(Value) end, Map);
rebuilt([Head | Tail]) -> [rebuilt(Head) | rebuilt(Tail)];
rebuilt(Binary) when is_binary(Binary) -> <<Binary/binary, "x">>;
rebuilt(Number) when is_float(Number) -> Number + 1.0;
rebuilt(Other) -> Other.

%% ---- who is called ----

kinds() -> [twitter, citm, numbers].

%% The other libraries that are here (Debian: erlang-jiffy).
peers() ->
    [M || M <- [jiffy, json], code:ensure_loaded(M) =:= {module, M}].

call(Form, Direction, Json, Term) ->
    Module = case Form of fair -> simdjson; _ -> Form end,
    Args = case {Form, Direction} of
               {jiffy, decode} -> [Json, [return_maps]];
               {_, decode} -> [Json];
               {_, encode} -> [Term]
           end,
    fun() -> apply(Module, Direction, Args) end.

%% The term, as a literal, and its JSON.
document(Kind, Size) ->
    persistent_term:put({?MODULE, Kind, Size},
                        of_parts(Kind, Size, rand:seed_s(exsss, Size), [])),
    Term = persistent_term:get({?MODULE, Kind, Size}),
    {Term, encoded(Term)}.

encoded(Term) ->
    iolist_to_binary((call(fair, encode, none, Term))()).

%% ---- documents of about a size, as the web has them; the same ones in every run ----

%% Terms whose JSON has at least that many bytes, and not many more; keys and strings are binaries.
%%
%% `twitter': statuses of 1.9 kB, each with its user, its text, which has escapes and characters of
%% three bytes, and 60 members in all; `citm': a catalogue, objects of small objects by number, two
%% of which grow with the document; `numbers': an array, half integers, half floats of 4 to 17
%% digits.
of_parts(Kind, Left, _, Parts) when Left =< 0 ->
    whole(Kind, lists:reverse(Parts));
of_parts(Kind, Left, State0, Parts) ->
    {Part, State} = part(Kind, State0),
    of_parts(Kind, Left - byte_size(encoded(Part)) - 1, State, [Part | Parts]).

whole(twitter, Statuses) ->
    #{<<"statuses">> => Statuses, <<"search_metadata">> => #{<<"count">> => length(Statuses)}};
whole(numbers, Numbers) ->
    lists:append(Numbers);
whole(citm, Parts) ->
    #{<<"areaNames">> => maps:from_list([{Key, Area} || [[Key, Area], _, _] <- Parts]),
      <<"events">> => maps:from_list([{Key, Event} || [_, [Key, Event], _] <- Parts]),
      <<"performances">> => [P || [_, _, P] <- Parts]}.

part(numbers, State) ->
    lists:mapfoldl(fun number/2, State, lists:seq(1, 20));
part(citm, State0) ->
    {Id, State1} = int(State0, 300000000),
    {Price, State2} = int(State1, 90000),
    {Start, State3} = int(State2, 1 bsl 40),
    Number = integer_to_binary(100000000 + Id),
    Event = #{<<"description">> => null, <<"id">> => Id, <<"logo">> => null,
              <<"name">> => <<"30th Anniversary Tour ", Number/binary>>,
              <<"subTopicIds">> => [337184269, 337184283, Id], <<"subjectCode">> => null,
              <<"subtitle">> => null, <<"topicIds">> => [324846099, 107888604]},
    Areas = [#{<<"areaId">> => 205705994 + I, <<"blockIds">> => []} || I <- lists:seq(1, 6)],
    Prices = [#{<<"amount">> => Price + I, <<"audienceSubCategoryId">> => 337100890,
                <<"seatCategoryId">> => 338937295} || I <- lists:seq(1, 3)],
    Performance = #{<<"eventId">> => Id, <<"id">> => Id + 1, <<"logo">> => null, <<"name">> => null,
                    <<"prices">> => Prices,
                    <<"seatCategories">> => [#{<<"areas">> => Areas, <<"seatCategoryId">> => Id}],
                    <<"seatMapImage">> => null, <<"start">> => Start,
                    <<"venueCode">> => <<"PLEYEL_PLEYEL">>},
    {[[Number, <<"Arrière-scène central"/utf8>>], [Number, Event], Performance], State3};
part(twitter, State0) ->
    {Id, State1} = int(State0, 1 bsl 58),
    {Words, State2} = int(State1, 16),
    {Count, State} = int(State2, 100000),
    Text = iolist_to_binary([<<"@aym0566x \n\n名前:前田あゆみ\n第一印象:なんか怖っ！ "/utf8>>
                             | lists:duplicate(Words, <<"some words \"and\" more ">>)]),
    {#{<<"metadata">> => #{<<"result_type">> => <<"recent">>, <<"iso_language_code">> => <<"ja">>},
       <<"created_at">> => <<"Sun Aug 31 00:29:15 +0000 2014">>,
       <<"id">> => Id, <<"id_str">> => integer_to_binary(Id), <<"text">> => Text,
       <<"source">> => <<"<a href=\"http://twitter.com/download/iphone\" rel=\"nofollow\">"
                         "Twitter for iPhone</a>">>,
       <<"truncated">> => false, <<"in_reply_to_status_id">> => null,
       <<"in_reply_to_user_id">> => 866260188, <<"in_reply_to_screen_name">> => <<"aym0566x">>,
       <<"user">> => user(Id, Count), <<"geo">> => null, <<"coordinates">> => null,
       <<"place">> => null, <<"contributors">> => null, <<"retweet_count">> => Count,
       <<"favorite_count">> => 0,
       <<"entities">> => #{<<"hashtags">> => [], <<"symbols">> => [], <<"urls">> => [],
                           <<"user_mentions">> => [mention(Count)]},
       <<"favorited">> => false, <<"retweeted">> => false, <<"lang">> => <<"ja">>},
     State}.

user(Id, Count) ->
    #{<<"id">> => Id div 7, <<"id_str">> => integer_to_binary(Id div 7), <<"name">> => <<"AYUMI">>,
      <<"screen_name">> => <<"ayuu0123">>, <<"location">> => <<>>,
      <<"description">> => <<"元野球部マネージャー❤︎…最高の夏をありがとう…❤︎"/utf8>>, <<"url">> => null,
      <<"protected">> => false, <<"followers_count">> => Count, <<"friends_count">> => Count div 2,
      <<"listed_count">> => 0, <<"created_at">> => <<"Sat Feb 16 13:46:18 +0000 2013">>,
      <<"favourites_count">> => Count div 3, <<"utc_offset">> => null, <<"time_zone">> => null,
      <<"geo_enabled">> => false, <<"verified">> => false, <<"statuses_count">> => Count * 3,
      <<"lang">> => <<"en">>, <<"profile_background_color">> => <<"C0DEED">>,
      <<"profile_background_image_url">> => <<"http://abs.twimg.com/images/themes/theme1/bg.png">>,
      <<"profile_background_tile">> => false,
      <<"profile_image_url">> =>
          <<"http://pbs.twimg.com/profile_images/497760886795153410/LDjAwR_y_normal.jpeg">>,
      <<"profile_banner_url">> => <<"https://pbs.twimg.com/profile_banners/1186275104/1409318784">>,
      <<"profile_link_color">> => <<"0084B4">>, <<"profile_sidebar_fill_color">> => <<"DDEEF6">>,
      <<"default_profile">> => true, <<"default_profile_image">> => false, <<"following">> => false,
      <<"follow_request_sent">> => false, <<"notifications">> => false}.

mention(Count) ->
    #{<<"screen_name">> => <<"aym0566x">>, <<"name">> => <<"前田あゆみ"/utf8>>, <<"id">> => Count,
      <<"id_str">> => integer_to_binary(Count), <<"indices">> => [0, 9]}.

%% Floats of all lengths: those with few digits are read in another way than
%% those with many.
number(N, State0) when N rem 2 =:= 0 ->
    {X, State} = int(State0, 1 bsl (N * 2)),
    {X - (1 bsl (2 * N - 1)), State};
number(N, State0) ->
    {X, State} = rand:uniform_s(State0),
    {binary_to_float(float_to_binary(X * 1000, [{decimals, min(13, N)}])), State}.

int(State, Most) ->
    rand:uniform_s(Most, State).
