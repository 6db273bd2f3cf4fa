%% What `bin/fairnif check --json FILE' writes. Its form is priv/check-1.schema.json; a
%% change that a reader of version 1 would trip over is a new version and a new schema.
-module(fairnif_check_report).

-export([report/3]).

-define(SCHEMA_VERSION, 1).

%% @doc The report of a check, for fairnif_check_json:encode/1: the version first, the context of
%% the machine (fairnif_check_machine:context/0), the result with its raw samples, and what has
%% changed since the baseline when there is one.
-spec report(fairnif_check_run:result(), #{atom() => term()},
             fairnif_check_baseline:comparison() | undefined) -> fairnif_check_json:value().
report(Result, Context, Comparison) ->
    {[{schema_version, ?SCHEMA_VERSION},
      {command, check},
      {context, Context},
      {result, Result}
      | [{baseline, Comparison} || Comparison =/= undefined]]}.
