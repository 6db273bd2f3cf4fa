%% A call that asks its caller for something: {fairnif_asks, Object, Request, ...}.
-define(ASKS(Value), (is_tuple(Value) andalso tuple_size(Value) >= 3
                      andalso element(1, Value) =:= fairnif_asks)).
