%% @doc Sees a blocked scheduler while it is blocked, and names the culprit.
-module(fairnif_watch).

-export_type([finding/0, view/0]).

-type finding() :: #{atom() => term()}.
-type view() :: #{atom() => term()}.
