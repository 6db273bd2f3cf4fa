%% Findings as Logger reports, up to N a minute.
%%
%% A blocked scheduler is logged once, when it is over: with how long it was, and the best that is
%% known of who it was. Where it lasts long that is logged as well, and `over' at its end. Of
%% anything else is logged what is new, what has become worse, and what errors have ended. Handlers
%% run in the calling process: never call this in the collector.
-module(fairnif_watch_log).

-export([new/1, allow/2, finding/4, report/1]).

-export_type([limit/0]).

%% A block that lasts this long is not waited for.
-define(LONG_MS, 10000).

-record(limit, {per_minute :: non_neg_integer(),
                since = undefined :: undefined | integer(),
                used = 0 :: non_neg_integer(),
                suppressed = 0 :: non_neg_integer(),
                %% Blocks that last and were logged.
                long = [] :: [pos_integer()]}).

-opaque limit() :: #limit{}.

%% @doc That many lines a minute.
-spec new(non_neg_integer()) -> limit().
new(PerMinute) ->
    #limit{per_minute = PerMinute}.

%% @doc May a line be logged at `NowMs'? `{yes, Suppressed, _}': yes, and that many were suppressed
%% since the last one.
-spec allow(NowMs :: integer(), limit()) -> {yes, non_neg_integer(), limit()} | {no, limit()}.
allow(Now, #limit{since = Since} = Limit) when Since =:= undefined; Now - Since >= 60000 ->
    in_minute(Limit#limit{since = Now, used = 0});
allow(_, Limit) ->
    in_minute(Limit).

in_minute(#limit{per_minute = Most, used = Used, suppressed = N} = Limit) when Used < Most ->
    {yes, N, Limit#limit{used = Used + 1, suppressed = 0}};
in_minute(#limit{suppressed = N} = Limit) ->
    {no, Limit#limit{suppressed = N + 1}}.

%% @doc Logs the finding if it is one to log and the limit allows. Answers how many lines were
%% suppressed by this call, 0 or 1.
-spec finding(atom(), fairnif_watch_finding:finding(), NowMs :: integer(), limit() | off) ->
          {0 | 1, limit() | off}.
finding(_, _, _, off) ->
    {0, off};
finding(What, Finding, Now, #limit{long = Long} = Limit) ->
    case said(What, Finding, Long) of
        nothing ->
            {0, Limit};
        {How, Known} ->
            case allow(Now, Limit#limit{long = Known}) of
                {yes, Suppressed, Next} -> log(What, How, Finding, Suppressed), {0, Next};
                {no, Next} -> {1, Next}
            end
    end.

%% Whether it is said, as something or as the end of it; and the blocks whose end is still to come
%% though they were spoken of.
said(ended, #{detector := scheduler_blocked, id := Id}, Long) ->
    case lists:member(Id, Long) of
        true -> {over, lists:delete(Id, Long)};
        false -> {once, Long}
    end;
said(_, #{detector := scheduler_blocked, id := Id, duration_ms := Ms}, Long) ->
    case is_number(Ms) andalso Ms >= ?LONG_MS andalso not lists:member(Id, Long) of
        true -> {once, [Id | Long]};
        false -> nothing
    end;
said(ended, #{severity := error}, Long) -> {over, Long};
said(What, _, Long) when What =:= new; What =:= worse -> {once, Long};
said(_, _, _) -> nothing.

%% Without a domain: Logger's default handler stops what has one that is not OTP's own.
log(What, How, #{severity := Severity} = Finding, Suppressed) ->
    logger:log(level(How, Severity),
               #{fairnif_watch => Finding, change => What, over => How =:= over,
                 suppressed => Suppressed},
               #{report_cb => fun ?MODULE:report/1, mfa => {?MODULE, log, 4}}).

level(over, _) -> notice;
level(once, error) -> error;
level(once, warning) -> warning;
level(once, unconfirmed) -> notice.

%% @private The text of a report, for Logger.
-spec report(map()) -> {io:format(), [term()]}.
report(#{fairnif_watch := Finding, over := Over, suppressed := Suppressed}) ->
    {"~ts~ts~ts", [case Over of true -> "over: "; false -> "" end,
                   fairnif_watch_finding:line(Finding),
                   case Suppressed of
                       0 -> "";
                       _ -> io_lib:format(" (~b findings before this one were not logged)",
                                          [Suppressed])
                   end]}.
