%% What h2load's log of requests says: how long each light request took, counted from when it was
%% due, and what the server answered over time.
%%
%% Pure: text and numbers in, numbers out.  Times are microseconds since the epoch, as h2load writes
%% them.
%%
%% h2load notes when it sent a request.  When a connection has as many under way as it may have, the
%% next ones are not sent until one is answered: a server that stops for four seconds looks late to
%% 25 requests, and not to the 400 that should have been asked for meanwhile.  So a request that was
%% delayed counts from when it was due.  A connection's requests are due at equal distances from
%% its first one and are sent in that order, so the n-th that was sent is the n-th that was due; it
%% was delayed if at that time as many of those before it had no answer yet as may be under way.
%% Any other one counts from when it was sent: that h2load itself is some milliseconds early or late
%% is not the server's doing.
-module(fairnif_exp_http_log).

-export([parse/1, due/2, light/3, heavy/2, timeline/4]).

-export_type([entry/0, request/0]).

%% When it was sent, what was answered (-1: the stream was reset), when.
-type entry() :: {Sent :: integer(), Status :: integer(), Answered :: integer()}.
%% From when it counts.  `undefined': no answer as long as the client waited.
-type request() :: {Since :: integer(), Sent :: integer() | undefined,
                    Status :: integer() | undefined, Answered :: integer() | undefined}.
-type window() :: {From :: integer(), To :: integer()}.

-define(OK, 200).

%% @doc The lines of a log, in the order in which they were sent.  A last line that is not whole
%% (h2load was killed) is left out.
-spec parse(binary()) -> [entry()].
parse(Text) ->
    Lines = lists:droplast(binary:split(Text, <<"\n">>, [global])),
    lists:sort([begin
                    [From, Code, Took] = [binary_to_integer(N) || N <- [Sent, Status, Us]],
                    {From, Code, From + Took}
                end || Line <- Lines,
                       [Sent, Status, Us | _] <- [binary:split(Line, <<"\t">>, [global])]]).

%% @doc All requests of one connection that were due until `until', at that many a second, up to
%% that many of them under way: those that were answered, and those of which nothing was heard.  The
%% first one is due when it is sent; `from' stands for that where nothing was ever answered.
-spec due([entry()], #{per_s := pos_integer(), streams := pos_integer(), from := integer(),
                       until := integer()}) -> [request()].
due([{First, _, _} | _] = Entries, Spec) -> due(Entries, 0, gb_sets:new(), Spec#{from := First});
due([], Spec) -> due([], 0, gb_sets:new(), Spec).

%% Open: those sent before that had no answer yet when the one before was due.
due([], N, Open, #{until := End} = Spec) ->
    case at(N, Spec) of
        At when At < End -> [{At, undefined, undefined, undefined} | due([], N + 1, Open, Spec)];
        _ -> []
    end;
due([{Sent, Status, Answered} | Entries], N, Open0, #{streams := Streams} = Spec) ->
    At = at(N, Spec),
    Open = answered(At, Open0),
    Since = case gb_sets:size(Open) >= Streams of
                true -> min(At, Sent);
                false -> Sent
            end,
    [{Since, Sent, Status, Answered}
     | due(Entries, N + 1, gb_sets:add({Answered, N}, Open), Spec)].

at(N, #{from := First, per_s := PerS}) ->
    First + N * 1000000 div PerS.

%% {Answered, N} of those that had no answer yet at that time.
answered(At, Open) ->
    case gb_sets:is_empty(Open) orelse gb_sets:take_smallest(Open) of
        {{Answered, _}, Rest} when Answered =< At -> answered(At, Rest);
        _ -> Open
    end.

%% @doc What light requests due within the window were given.  One that was not answered until End
%% took at least until then, and counts as that long; one that was answered with an error has no
%% time.
-spec light([request()], window(), End :: integer()) -> #{atom() => term()}.
light(All, {From, To}, End) ->
    Requests = [R || {Since, _, _, _} = R <- All, Since >= From, Since < To],
    {Late, InTime} = lists:partition(fun(R) -> unanswered(R, End) end, Requests),
    Took = took(Requests, End),
    Sent = [Answered - S || {_, S, ?OK, Answered} <- Requests],
    Answers = answers(All, From, To),
    Well = length([R || {_, _, ?OK, _} = R <- InTime]),
    #{due => length(Requests), answered => Well, failed => length(InTime) - Well,
      unanswered => length(Late),
      sent_late => length([late || {Since, S, _, _} <- Requests, is_integer(S), S > Since]),
      requests_per_s => per_s(length(Answers), From, To),
      p50_us => percentile(50, Took), p99_us => percentile(99, Took),
      max_us => percentile(100, Took),
      p50_sent_us => percentile(50, Sent), p99_sent_us => percentile(99, Sent),
      max_sent_us => percentile(100, Sent),
      silence_ms => silence(Answers, From, To) div 1000}.

%% An error is no answer, however fast it comes: those are counted apart.
took(Requests, End) ->
    [case unanswered(R, End) of
         true -> max(0, End - Since);
         false -> Answered - Since
     end || {Since, _, Status, Answered} = R <- Requests,
            Status =:= ?OK orelse Status =:= undefined].

%% `undefined' is greater than every number.
unanswered({_, _, _, Answered}, End) -> Answered > End.

answers(Requests, From, To) ->
    lists:sort([A || {_, _, ?OK, A} <- Requests, A >= From, A < To]).

%% The longest time without any answer.
silence(Answers, From, To) ->
    lists:max(lists:zipwith(fun(A, B) -> B - A end, [From | Answers], Answers ++ [To])).

%% @doc What heavy requests were given: the answers within the window.
-spec heavy([entry()], window()) -> #{atom() => term()}.
heavy(Entries, {From, To}) ->
    Within = [E || {_, _, Answered} = E <- Entries, Answered >= From, Answered < To],
    Took = [Answered - Sent || {Sent, ?OK, Answered} <- Within],
    #{done => length(Took), failed => length(Within) - length(Took),
      per_s => per_s(length(Took), From, To),
      p50_us => percentile(50, Took), max_us => percentile(100, Took)}.

%% @doc The window in steps of Step: answers a second, how long those took that were due in the
%% step, and how many of them were not answered until End.
-spec timeline([request()], window(), Step :: pos_integer(), End :: integer()) ->
          [#{atom() => term()}].
timeline(Requests, {From, To}, Step, End) ->
    [begin
         Due = [R || {Since, _, _, _} = R <- Requests, Since >= At, Since < At + Step],
         #{t_ms => (At - From) div 1000,
           requests_per_s => length(answers(Requests, At, At + Step)) * 1.0e6 / Step,
           p99_us => percentile(99, took(Due, End)),
           unanswered => length([no || R <- Due, unanswered(R, End)])}
     end || At <- lists:seq(From, To - Step, Step)].

percentile(_, []) -> undefined;
percentile(P, Samples) -> fairnif_check_stats:percentile(P, Samples).

per_s(Count, From, To) ->
    round(Count * 1.0e7 / (To - From)) / 10.
