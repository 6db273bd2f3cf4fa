%% Findings as Logger reports, so many a minute and no more.
%%
%% Logged are findings that are new, that have become worse, and errors that have ended (with how
%% long it was). Handlers run in the calling process: never call this in the collector.
-module(fairnif_watch_log).

-export([new/1, allow/2, finding/4, report/1]).

-export_type([limit/0]).

-record(limit, {per_minute :: non_neg_integer(),
                since = undefined :: undefined | integer(),
                used = 0 :: non_neg_integer(),
                held = 0 :: non_neg_integer()}).

-opaque limit() :: #limit{}.

%% @doc So many lines a minute.
-spec new(non_neg_integer()) -> limit().
new(PerMinute) ->
    #limit{per_minute = PerMinute}.

%% @doc May a line be logged at `NowMs'? `{yes, HeldBack, _}': yes, and so many were held back since
%% the last one.
-spec allow(NowMs :: integer(), limit()) -> {yes, non_neg_integer(), limit()} | {no, limit()}.
allow(Now, #limit{since = Since} = Limit) when Since =:= undefined; Now - Since >= 60000 ->
    in_minute(Limit#limit{since = Now, used = 0});
allow(_, Limit) ->
    in_minute(Limit).

in_minute(#limit{per_minute = Most, used = Used, held = Held} = Limit) when Used < Most ->
    {yes, Held, Limit#limit{used = Used + 1, held = 0}};
in_minute(#limit{held = Held} = Limit) ->
    {no, Limit#limit{held = Held + 1}}.

%% @doc Logs the finding if it is one to log and the limit allows. Answers how many lines were held
%% back by this call, 0 or 1.
-spec finding(atom(), fairnif_watch_finding:finding(), NowMs :: integer(), limit() | off) ->
          {0 | 1, limit() | off}.
finding(_, _, _, off) ->
    {0, off};
finding(What, Finding, Now, Limit) ->
    case is_logged(What, Finding) of
        false ->
            {0, Limit};
        true ->
            case allow(Now, Limit) of
                {yes, Held, Next} -> log(What, Finding, Held), {0, Next};
                {no, Next} -> {1, Next}
            end
    end.

is_logged(new, _) -> true;
is_logged(worse, _) -> true;
is_logged(ended, #{severity := error}) -> true;
is_logged(_, _) -> false.

%% Without a domain: Logger's default handler stops what has one that is not OTP's own.
log(What, #{severity := Severity} = Finding, Held) ->
    logger:log(level(What, Severity),
               #{fairnif_watch => Finding, change => What, held_back => Held},
               #{report_cb => fun ?MODULE:report/1, mfa => {?MODULE, log, 3}}).

level(ended, _) -> notice;
level(_, error) -> error;
level(_, warning) -> warning;
level(_, recheck) -> notice.

%% @private The text of a report, for Logger.
-spec report(map()) -> {io:format(), [term()]}.
report(#{fairnif_watch := Finding, change := What, held_back := Held}) ->
    {"~ts~ts~ts", [case What of ended -> "over: "; _ -> "" end,
                   fairnif_watch_finding:line(Finding),
                   case Held of
                       0 -> "";
                       _ -> io_lib:format(" (~b findings before this one were not logged)", [Held])
                   end]}.
