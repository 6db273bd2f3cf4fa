//! The attribute macro of the crate `fairnif`, where it is documented.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, LitInt, LitStr, Result, Type};

/// Makes an `async fn` a NIF that yields.
///
/// It is registered with rustler, under its name and with an argument for each parameter that is
/// not a `Ticker` or a `Caller`. What the parameters are is decoded by rustler's `Decoder` before the function is
/// called, and what it returns is encoded by `Encoder`; a `Result` with `fairnif::Error` or
/// `rustler::Error` raises. A wrong argument raises `badarg`, a panic `nif_panicked`, as rustler's
/// functions do.
///
/// The future must be `Send` and `'static`: between two of its steps it may change threads, and
/// the terms of the first step are garbage by then. So no `Env`, no `Term`, no `Rc` and no guard of
/// a lock can be kept across an `.await`.
///
/// ```no_run
/// use fairnif::{Bin, Error, Ticker};
///
/// #[fairnif::nif(name = "count_nif", mode = "auto")]
/// async fn count(t: Ticker, data: Bin, byte: u8) -> Result<u64, Error> {
///     if data.is_empty() {
///         return Err(Error::BadArg);
///     }
///     let mut found = 0;
///     for block in data.chunks(4096) {
///         found += block.iter().filter(|b| **b == byte).count() as u64;
///         t.tick(block.len()).await;
///     }
///     Ok(found)
/// }
/// ```
///
/// | option | |
/// |---|---|
/// | `mode = "auto"` | begins on the caller's scheduler, until its ticks prove to lie too far apart: the default |
/// | `"normal"`, `"dirty_cpu"`, `"dirty_io"` | begins there |
/// | `"threaded"` | begins on a thread of the runtime's pool; the call is for `fairnif:await/1` |
/// | `may_wait` | the Erlang function hands what the NIF answers to `fairnif:await/1`, so it may wait |
/// | `prompt` | what it computes on the pool's threads has the priority of a scheduler |
/// | `no_yield` | runs to its end where it begins |
/// | `name = "..."` | what it is called in Erlang |
/// | `stack_size = N` | bytes of stack, 16 KiB to 64 MiB: 128 KiB |
/// | `slice_us = N` | length of a slice on normal schedulers, us |
/// | `max_tasks = N` | how many calls may be under way at once |
#[proc_macro_attribute]
pub fn nif(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let mut parsed = Options::default();
    let parser = syn::meta::parser(|meta| parsed.parse(meta));
    syn::parse_macro_input!(options with parser);
    let function = syn::parse_macro_input!(item as ItemFn);
    expand(&parsed, &function).unwrap_or_else(Error::into_compile_error).into()
}

/// Mode, and its name in the crate.
const MODES: [(&str, &str); 5] = [
    ("auto", "AUTO"),
    ("normal", "NORMAL"),
    ("dirty_cpu", "DIRTY_CPU"),
    ("dirty_io", "DIRTY_IO"),
    ("threaded", "THREADED"),
];

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    mode: Option<&'static str>,
    flags: Vec<&'static str>,
    stack_size: Option<LitInt>,
    slice_us: Option<LitInt>,
    max_tasks: Option<LitInt>,
}

impl Options {
    fn parse(&mut self, meta: ParseNestedMeta) -> Result<()> {
        let option = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match option.as_str() {
            "mode" => self.mode = Some(mode(&meta.value()?.parse()?)?),
            "name" => self.name = Some(meta.value()?.parse()?),
            "may_wait" => self.flags.push("MAY_WAIT"),
            "prompt" => self.flags.push("PROMPT"),
            "no_yield" => self.flags.push("NO_YIELD"),
            "stack_size" => self.stack_size = Some(meta.value()?.parse()?),
            "slice_us" => self.slice_us = Some(meta.value()?.parse()?),
            "max_tasks" => self.max_tasks = Some(meta.value()?.parse()?),
            _ => return Err(meta.error(
                "expected one of mode, name, may_wait, prompt, no_yield, stack_size, slice_us, max_tasks",
            )),
        }
        Ok(())
    }
}

fn mode(name: &LitStr) -> Result<&'static str> {
    let value = name.value();
    let found = MODES.iter().find(|(mode, _)| *mode == value);
    found.map(|(_, constant)| *constant).ok_or_else(|| {
        Error::new(name.span(), "expected auto, normal, dirty_cpu, dirty_io or threaded")
    })
}

fn expand(options: &Options, function: &ItemFn) -> Result<TokenStream> {
    let signature = &function.sig;
    let Some(_) = signature.asyncness else {
        return Err(Error::new(
            signature.fn_token.span(),
            "a fair function is an `async fn`; one that never pauses is rustler's: #[rustler::nif]",
        ));
    };
    if let Some(unsafety) = signature.unsafety {
        return Err(Error::new(unsafety.span(), "Erlang calls it: it cannot be unsafe"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a fair function has no parameters of types or lifetimes: it owns its arguments",
        ));
    }
    let arguments = arguments(signature)?;
    let arity = arguments.iter().filter(|argument| argument.is_term()).count() as u32;
    let values = values(&arguments);
    let ident = &signature.ident;
    let name = c_name(options, ident)?;
    let mode = format_ident!("{}", options.mode.unwrap_or("AUTO"));
    let flags = options.flags.iter().map(|flag| format_ident!("{flag}"));
    let number = |option: &Option<LitInt>| option.as_ref().map_or(quote!(0), |n| quote!(#n));
    let stack_size = number(&options.stack_size);
    let slice_us = number(&options.slice_us);
    let max_tasks = number(&options.max_tasks);

    Ok(quote! {
        #function

        const _: () = {
            // The author's function and types are named in here: nothing of theirs is to be hidden.
            use ::fairnif::codegen as __fairnif;

            unsafe extern "C" fn __fairnif_body(
                __fairnif_task: *mut __fairnif::Task,
            ) -> __fairnif::RawTerm {
                __fairnif::run(
                    __fairnif_task,
                    |__fairnif_args| ::core::result::Result::Ok(#ident(#values)),
                    |value, env| {
                        use __fairnif::{AnswerOther as _, AnswerResult as _};
                        (&mut &mut __fairnif::Answer::new(value)).answer(env)
                    },
                )
            }

            unsafe extern "C" fn __fairnif_enter(
                env: __fairnif::RawEnv,
                argc: __fairnif::int,
                argv: *const __fairnif::RawTerm,
            ) -> __fairnif::RawTerm {
                __FAIRNIF_FUNCTION.enter(env, argc, argv)
            }

            static __FAIRNIF_FUNCTION: __fairnif::Function = __fairnif::Function::new(
                #name,
                #arity,
                __fairnif::mode::#mode #(| __fairnif::mode::#flags)*,
                __fairnif::Options {
                    body: ::core::option::Option::Some(__fairnif_body),
                    stack_size: #stack_size,
                    slice_us: #slice_us,
                    max_tasks: #max_tasks,
                },
            );

            __fairnif::inventory::submit! {
                __fairnif::nif(&__FAIRNIF_FUNCTION, __fairnif_enter)
            }
            __fairnif::inventory::submit! { __fairnif::Entry(&__FAIRNIF_FUNCTION) }
        };
    })
}

/// What a parameter is made of.
enum Argument<'a> {
    Ticker,
    Caller,
    Term(&'a Type),
}

impl Argument<'_> {
    fn is_term(&self) -> bool {
        matches!(self, Argument::Term(_))
    }
}

fn arguments(signature: &syn::Signature) -> Result<Vec<Argument<'_>>> {
    signature.inputs.iter().map(argument).collect()
}

fn argument(input: &FnArg) -> Result<Argument<'_>> {
    let FnArg::Typed(typed) = input else {
        return Err(Error::new(input.span(), "a fair function is no method"));
    };
    let ty = &*typed.ty;
    match ty {
        Type::Reference(_) => {
            Err(Error::new(ty.span(), "a fair function owns its arguments: String, Vec, fairnif::Bin"))
        }
        Type::Path(path) => match path.path.segments.last().map(|s| s.ident.to_string()).as_deref() {
            Some("Ticker") => Ok(Argument::Ticker),
            Some("Caller") => Ok(Argument::Caller),
            Some("Env" | "Term") => Err(Error::new(
                ty.span(),
                "terms and environments do not survive a pause: decode into a type that owns its data",
            )),
            Some("Binary") => Err(Error::new(
                ty.span(),
                "rustler's Binary does not survive a pause: fairnif::Bin does",
            )),
            _ => Ok(Argument::Term(ty)),
        },
        _ => Ok(Argument::Term(ty)),
    }
}

fn values(arguments: &[Argument]) -> TokenStream {
    let mut index = 0usize;
    let values = arguments.iter().map(|argument| match argument {
        Argument::Ticker => quote!(::fairnif::Ticker::new()),
        Argument::Caller => quote!(__fairnif_args.caller()?),
        Argument::Term(ty) => {
            index += 1;
            let index = index - 1;
            quote!(__fairnif_args.get::<#ty>(#index)?)
        }
    });
    quote!(#(#values),*)
}

fn c_name(options: &Options, ident: &syn::Ident) -> Result<syn::LitCStr> {
    let (name, span) = match &options.name {
        Some(name) => (name.value(), name.span()),
        None => (ident.to_string().trim_start_matches("r#").to_string(), ident.span()),
    };
    if name.is_empty() || name.len() > 255 || !name.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(Error::new(span, "a name of 1 to 255 printable ASCII characters"));
    }
    let name = std::ffi::CString::new(name).map_err(|e| Error::new(span, e))?;
    Ok(syn::LitCStr::new(&name, span))
}
