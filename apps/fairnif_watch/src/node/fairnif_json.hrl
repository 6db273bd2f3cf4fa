%% What JSON text is made of: over OTP's json where there is one (27), by its rules where there is
%% none. fairnif_check and fairnif_watch, of which neither can depend on the other, have a copy each
%% of this file: tools/check_style compares them, docs/internals/decisions.md says why.

array(Values) -> [$[, lists:join($,, Values), $]].

object(Pairs) -> [${, lists:join($,, [[string(Key), $:, Value] || {Key, Value} <- Pairs]), $}].

%% Bytes that are no UTF-8 are read as Latin-1.
string(Text) ->
    case unicode:characters_to_binary(Text) of
        <<_/binary>> = Utf8 -> quoted(Utf8);
        _ -> quoted(unicode:characters_to_binary(Text, latin1))
    end.

-if(?OTP_RELEASE >= 27).
quoted(Utf8) -> json:encode_binary(Utf8).
-else.
quoted(Utf8) -> [$", [escaped(C) || <<C>> <= Utf8], $"].

escaped($") -> "\\\"";
escaped($\\) -> "\\\\";
escaped($\b) -> "\\b";
escaped($\f) -> "\\f";
escaped($\n) -> "\\n";
escaped($\r) -> "\\r";
escaped($\t) -> "\\t";
escaped(C) when C < 32 -> io_lib:format("\\u~4.16.0B", [C]);
escaped(C) -> C.
-endif.
