%% JSON documents of about a size, as the web has them.  The same ones in every
%% run.
-module(fairnif_bench_documents).

-export([kinds/0, document/2]).

-export_type([kind/0]).

-type kind() :: twitter | citm | numbers.

-spec kinds() -> [kind()].
kinds() ->
    [twitter, citm, numbers].

%% @doc Terms whose JSON has at least so many bytes, and not many more; keys and
%% strings are binaries.
%%
%% `twitter': statuses of 1.9 kB, each with its user, its text, which has
%% escapes and characters of three bytes, and 60 members in all; `citm': a
%% catalogue, objects of small objects by number, two of which grow with the
%% document; `numbers': an array, half integers, half floats of 4 to 17 digits.
-spec document(kind(), pos_integer()) -> term().
document(Kind, Size) ->
    State = rand:seed_s(exsss, Size),
    of_parts(Kind, Size, 0, State, []).

of_parts(Kind, Size, Made, _, Parts) when Made >= Size ->
    whole(Kind, lists:reverse(Parts));
of_parts(Kind, Size, Made, State0, Parts) ->
    {Part, State} = part(Kind, State0),
    of_parts(Kind, Size, Made + iolist_size(simdjson:encode(Part)) + 1, State, [Part | Parts]).

whole(twitter, Statuses) ->
    #{<<"statuses">> => Statuses, <<"search_metadata">> => #{<<"count">> => length(Statuses)}};
whole(numbers, Numbers) ->
    lists:append(Numbers);
whole(citm, Parts) ->
    #{<<"areaNames">> => maps:from_list([Area || {Area, _, _} <- citm_parts(Parts)]),
      <<"events">> => maps:from_list([Event || {_, Event, _} <- citm_parts(Parts)]),
      <<"performances">> => [P || {_, _, P} <- citm_parts(Parts)]}.

citm_parts(Parts) ->
    [{list_to_tuple(A), list_to_tuple(E), P} || [A, E, P] <- Parts].

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
