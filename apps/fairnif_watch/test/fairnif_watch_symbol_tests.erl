%% What symbols are called. The names are those that c++filt and rustc-demangle give.
-module(fairnif_watch_symbol_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(fairnif_watch_symbol, [readable/1, in_event/1]).

rust_test_() ->
    [?_assertEqual(Name, readable(Symbol))
     || {Symbol, Name} <-
            [%% the first scheme
             {<<"_ZN14pulldown_cmark9firstpass9FirstPass10parse_line17hd5aa6c2ef34400e7E">>,
              <<"pulldown_cmark::firstpass::FirstPass::parse_line">>},
             {<<"_ZN4core3ptr59drop_in_place$LT$fairnif..offload..Work$LT$$LP$$RP$$GT$$GT$"
                "17h518b3e811cdb0a7eE.llvm.10487681598574050433">>,
              <<"core::ptr::drop_in_place<fairnif::offload::Work<()>>">>},
             {<<"_ZN70_$LT$pulldown_cmark..strings..CowStr$u20$as$u20$core..clone..Clone$GT$5clone"
                "17h0ee66a5046480007E">>,
              <<"<pulldown_cmark::strings::CowStr as core::clone::Clone>::clone">>},
             {<<"_ZN3nif4spin28_$u7b$$u7b$closure$u7d$$u7d$17h0ee66a5046480007E">>,
              <<"nif::spin::{{closure}}">>},
             %% the second
             {<<"_RNvCs15kBYyAo9fc_7mycrate7example">>, <<"mycrate::example">>},
             {<<"_RNvMsb_NtCsgEmfK2I1SDS_4core3fmtNtB5_9Formatter9write_str">>,
              <<"<core::fmt::Formatter>::write_str">>},
             {<<"_RNvXsb_NtCsgEmfK2I1SDS_4core3fmtNtB5_9FormatterNtB5_5Write9write_str">>,
              <<"<core::fmt::Formatter as core::fmt::Write>::write_str">>},
             {<<"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3Box"
                "SNtNtBL_6string6StringEECsjrHSEGnQ3l9_3std">>,
              <<"core::ptr::drop_in_place<alloc::boxed::Box<[alloc::string::String]>>">>},
             {<<"_RNCNvCs1_1a1fs_0B3_.llvm.7">>, <<"a::f::{closure#1}">>},
             {<<"_RNvNCNKNvNtNtCsjrHSEGnQ3l9_3std6thread9spawnhook11SPAWN_HOOKS0023___RUST_STD_"
                "INTERNAL_VAL">>,
              <<"std::thread::spawnhook::SPAWN_HOOKS::{K#0}::{closure#0}::"
                "__RUST_STD_INTERNAL_VAL">>},
             {<<"_RNCNvCs1_1a1f0B3_">>, <<"a::f::{closure#0}">>},
             {<<"_RINvCs1_1a1fAhj10_TlEKjn1f_KbL_FUKCmEuDNtB2_1TEL_E">>,
              %% `L_' is no constant: the whole stays as it is.
              <<"_RINvCs1_1a1fAhj10_TlEKjn1f_KbL_FUKCmEuDNtB2_1TEL_E">>},
             {<<"_RINvCs1_1a1fAhj10_TlEKinf_Kb1_Kc41_FUKCmEuDNtB2_1TEL_RL_eOxPmQsE">>,
              <<"a::f<[u8; 16], (i32,), -15, true, 'A', fn(u32), dyn a::T, &str, *mut i64, "
                "*const u32, &mut i16>">>},
             {<<"_RNvC5a_b_c1u">>, <<"a_b_c::u">>}]].

%% The emulator's library does it; where that is none they stay.
cpp_test_() ->
    {setup, fun load/0,
     fun(_) ->
             [?_assert(lists:member(readable(Symbol), [Name | [Symbol || not is_cpp()]]))
              || {Symbol, Name} <-
                     [{<<"_Z6smoothRN4fair4taskENS_5bytesEd">>,
                       <<"smooth(fair::task&, fair::bytes, double)">>},
                      {<<"_ZN12_GLOBAL__N_16workerIjE4workEj">>,
                       <<"(anonymous namespace)::worker<unsigned int>::work(unsigned int)">>},
                      {<<"_ZNSt17_Function_handlerIFvvEZN12_GLOBAL__N_18spin_forIjEET_mEUlvE_E9_M_"
                         "invokeERKSt9_Any_data">>,
                       <<"std::_Function_handler<void (), (anonymous namespace)::spin_for"
                         "<unsigned int>(unsigned long)::{lambda()#1}>::_M_invoke("
                         "std::_Any_data const&)">>},
                      {<<"_ZN1aC1Ev">>, <<"a::a()">>}]]
     end}.

%% With the JIT it is C++.
is_cpp() ->
    readable(<<"_Z1fv">>) =:= <<"f()">>.

jit_test() ->
    load(),
    ?assert(is_cpp() orelse erlang:system_info(emu_flavor) =/= jit).

load() ->
    ok = fairnif_watch_native:load(
           filename:join(code:priv_dir(fairnif_watch), "fairnif_watch")).

others_stay_test_() ->
    {setup, fun load/0,
     [?_assertEqual(Symbol, readable(Symbol))
      || Symbol <- [<<"memcpy">>, <<"enif_make_copy">>, <<"_">>, <<>>, <<"_R">>, <<"_RNv">>,
                    <<"_Rest">>, <<"_ZNE">>, <<"_ZN3ab">>, <<"_ZN99999999999999999999a">>,
                    <<"_RNvB_1a">>, <<"_RBz_">>, <<"_RNvC99999999999999999999_a">>]]}.

%% Each level refers to the last one twice.
work_is_bounded_test_() ->
    Levels = fun(N, Level) -> iolist_to_binary(lists:duplicate(N, Level)) end,
    [{timeout, 20,
      fun() ->
              load(),
              {Us, Name} = timer:tc(fun() -> readable(Symbol) end),
              ?assert(Us < 1000000),
              ?assert(byte_size(Name) =< 160)
      end} || Symbol <- [<<"_RINvC1a1f", (Levels(60, <<"TB8_B8_">>))/binary, "E">>,
                         <<"_Z1f1AIiE", (list_to_binary([["S_IS", D, "_S", D, "_E"]
                                                         || D <- "0123456789ABCDEFGHIJKLMN"]))
                                        /binary>>,
                         <<"_RINvC1a1f", (Levels(240, <<"TT">>))/binary>>,
                         <<"_ZN", (Levels(100, <<"4abcd">>))/binary, "17h0123456789abcdefE">>]].

shortened_test_() ->
    Long = binary:copy(<<"abcdefgh">>, 30),
    [?_assertEqual(Short, readable(Name))
     || {Name, Short} <-
            [{<<"a<b<c<", Long/binary, ">>>::d(e)">>, <<"a<b<c<...>>>::d(e)">>},
             {<<"a<b", Long/binary, ">::operator<<(x)">>, <<"a<...>::operator<<(...)">>},
             {<<"a::operator()(", Long/binary, ")">>, <<"a::operator()(...)">>},
             {<<"<f(x) -> y", Long/binary, ">::g">>, <<"<...>::g">>},
             {Long, <<(binary:part(Long, 0, 157))/binary, "...">>}]].

any_symbol_test_() ->
    {timeout, 60,
     fun() -> load(), ?assert(proper:quickcheck(always_a_name(), [quiet, {numtests, 3000}])) end}.

always_a_name() ->
    ?FORALL({Start, Parts}, {oneof([<<"_R">>, <<"_ZN">>, <<"_Z">>, <<>>]), list(part())},
            begin
                Name = readable(iolist_to_binary([Start | Parts])),
                is_binary(Name) andalso byte_size(Name) =< 160
            end).

part() ->
    oneof([<<"Nv">>, <<"Nt">>, <<"NC">>, <<"C1a">>, <<"C1b">>, <<"M">>, <<"X">>, <<"Y">>, <<"I">>,
           <<"E">>, <<"B_">>, <<"B2_">>, <<"B5_">>, <<"s_">>, <<"s0_">>, <<"3abc">>, <<"R">>,
           <<"Q">>, <<"T">>, <<"A">>, <<"S">>, <<"F">>, <<"D">>, <<"L_">>, <<"K">>, <<"j5_">>,
           <<"p">>, <<"u">>, <<"h">>, <<"0">>, <<"9">>, <<"$LT$">>, <<"$u20$">>, <<"..">>, <<"$">>,
           <<"17h0123456789abcdefE">>, <<"S_">>, <<"S0_">>, <<"St">>, <<"v">>, <<"(">>, <<"<">>,
           binary(2)]).

the_frames_of_an_event_test() ->
    Frame = #{in => library, symbol => <<"_RNvC1a1f">>},
    ?assertEqual(#{event => blocked, stack => [Frame#{symbol := <<"a::f">>}, #{symbol => none}]},
                 in_event(#{event => blocked, stack => [Frame, #{symbol => none}]})),
    ?assertEqual(#{event => late}, in_event(#{event => late})).
