//! Binaries that survive pauses.

use std::cell::UnsafeCell;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustler::{Decoder, Encoder, Env, NifResult};

use crate::term::OwnedTerm;
use crate::vm::{self, ErlNifBinary};

/// Up to this size the VM keeps binaries on heaps, where they move: these are copied.
const HEAP_BINARY: usize = 64;

/// The bytes of a binary argument. They are not copied if there are more than 64.
///
/// A `Bin` holds its own reference: it may be cloned, stored, sent to another thread and outlive the
/// call. An argument of this type accepts binaries, not iolists.
///
/// A `Bin` of a part of a large binary keeps the whole binary in memory, as in Erlang.
#[derive(Clone)]
pub struct Bin(Inner);

#[derive(Clone)]
enum Inner {
    Small(Arc<[u8]>),
    Large(Held),
}

/// A binary term, and where its bytes are.
#[derive(Clone)]
struct Held {
    term: OwnedTerm,
    data: *const u8,
    size: usize,
}

// Safety: the bytes never change, and stay where they are as long as the term is held.
unsafe impl Send for Held {}
unsafe impl Sync for Held {}

impl Held {
    /// `None` when it is no binary. The copy is looked at, not what was copied: a binary that a
    /// process appends to may move until it is referred to from elsewhere.
    fn new(term: OwnedTerm) -> Option<Held> {
        let (data, size) = term.bytes()?;
        Some(Held { term, data, size })
    }
}

impl Deref for Bin {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Small(bytes) => bytes,
            // Safety: see `Held`.
            Inner::Large(held) => unsafe { std::slice::from_raw_parts(held.data, held.size) },
        }
    }
}

impl AsRef<[u8]> for Bin {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Bin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Bin({} bytes)", self.len())
    }
}

impl<'a> Decoder<'a> for Bin {
    fn decode(term: rustler::Term<'a>) -> NifResult<Bin> {
        let binary = rustler::Binary::from_term(term)?;
        if binary.len() <= HEAP_BINARY {
            return Ok(Bin(Inner::Small(binary.as_slice().into())));
        }
        let held = Held::new(<OwnedTerm as Decoder>::decode(term)?);
        held.map(|held| Bin(Inner::Large(held))).ok_or(rustler::Error::BadArg)
    }
}

impl Encoder for Bin {
    fn encode<'a>(&self, env: Env<'a>) -> rustler::Term<'a> {
        match &self.0 {
            Inner::Small(bytes) => vm::copy_bytes(env, bytes),
            Inner::Large(held) => held.term.encode(env),
        }
    }
}

/// A new binary. It is written in place and returned to the caller without a copy.
///
/// It grows like a `Vec<u8>`. It can still be read after it became a term (as a result, or as part of
/// one); the first write after that copies it.
///
/// ```no_run
/// use fairnif::{Bin, OwnedBin, Ticker};
///
/// #[fairnif::nif]
/// async fn exor(t: Ticker, data: Bin, byte: u8) -> OwnedBin {
///     let mut out = OwnedBin::with_capacity(data.len());
///     for block in data.chunks(4096) {
///         out.extend(block.iter().map(|b| b ^ byte));
///         t.tick(block.len()).await;
///     }
///     out
/// }
/// ```
pub struct OwnedBin {
    /// `None`: no memory was needed yet.
    buffer: Option<Buffer>,
    /// How many bytes of the buffer are written.
    len: usize,
    /// Set when the buffer was given to a term: nothing may be written to it any more.
    term: OnceLock<Bin>,
}

struct Buffer {
    /// The VM writes to it when a term is made of it; not to `data` and `size`.
    binary: UnsafeCell<ErlNifBinary>,
    /// It belongs to a term.
    given: AtomicBool,
}

// Safety: the memory is the VM's, which any thread may use. It is changed through `&mut`; and a
// term is made of it by one thread, which `OnceLock` sees to.
unsafe impl Send for Buffer {}
unsafe impl Sync for Buffer {}
// A panic leaves it whole. rustler asks for this of what it encodes.
impl RefUnwindSafe for Buffer {}

impl Buffer {
    fn new(size: usize) -> Option<Buffer> {
        let binary = vm::alloc_binary(size)?.into();
        Some(Buffer { binary, given: AtomicBool::new(false) })
    }

    fn data(&self) -> *mut u8 {
        // Safety: a field that is written through `&mut` only.
        unsafe { (*self.binary.get()).data }
    }

    fn size(&self) -> usize {
        // Safety: as above.
        unsafe { (*self.binary.get()).size }
    }

    fn reallocate(&mut self, size: usize) -> bool {
        // Safety: `OwnedBin` asks for it only when it was not given away.
        unsafe { vm::realloc_binary(self.binary.get_mut(), size) }
    }

    /// The first `len` bytes of it as a term, which they belong to from now on.
    fn give(&self, len: usize) -> Bin {
        let term = OwnedTerm::made(|env| {
            self.given.store(true, Ordering::Relaxed);
            // Safety: once, see above; the environment is new.
            unsafe { vm::make_part(vm::raw_env(env), self.binary.get(), len) }
        });
        match Held::new(term) {
            Some(held) => Bin(Inner::Large(held)),
            None => unreachable!("a binary is none"),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !*self.given.get_mut() {
            // Safety: no other code has it.
            unsafe { vm::release_binary(self.binary.get_mut()) };
        }
    }
}

impl OwnedBin {
    /// Creates an empty binary. Allocates nothing.
    pub const fn new() -> OwnedBin {
        OwnedBin { buffer: None, len: 0, term: OnceLock::new() }
    }

    /// Creates an empty binary with room for `capacity` bytes.
    ///
    /// # Panics
    /// If memory is exhausted, as every function here that allocates.
    pub fn with_capacity(capacity: usize) -> OwnedBin {
        let mut bin = OwnedBin::new();
        bin.reallocate(capacity);
        bin
    }

    /// Creates a binary of `len` zeros.
    pub fn zeroed(len: usize) -> OwnedBin {
        let mut bin = OwnedBin::with_capacity(len);
        bin.resize(len, 0);
        bin
    }

    /// The bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        self
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // Safety: there is room for them.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.end(), bytes.len()) };
        self.len += bytes.len();
    }

    /// Appends one byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.reserve(1);
        // Safety: there is room for it.
        unsafe { self.end().write(byte) };
        self.len += 1;
    }

    /// As `Vec::resize`.
    pub fn resize(&mut self, len: usize, byte: u8) {
        let more = len.saturating_sub(self.len);
        self.reserve(more);
        // Safety: there is room for them.
        unsafe { self.end().write_bytes(byte, more) };
        self.len = len;
    }

    /// Makes room for `more` additional bytes.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        self.take_back();
        if self.capacity() - self.len < more {
            self.grow(more);
        }
    }

    /// Frees unused capacity, which would otherwise stay in memory with the term.
    pub fn shrink_to_fit(&mut self) {
        self.take_back();
        if self.capacity() > self.len {
            self.reallocate(self.len);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let Some(needed) = self.len.checked_add(more) else { panic!("fairnif: a binary too long") };
        self.reallocate(needed.max(self.len.saturating_mul(2)).max(HEAP_BINARY));
    }

    /// Continues with a copy, where a term has the bytes.
    #[inline]
    fn take_back(&mut self) {
        if let Some(term) = self.term.get() {
            // The term goes after that: when memory is out it still has the bytes.
            let copy = OwnedBin::from(&term[..]);
            *self = copy;
        }
    }

    fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::size)
    }

    fn reallocate(&mut self, size: usize) {
        let done = match &mut self.buffer {
            Some(buffer) => buffer.reallocate(size),
            None if size == 0 => true,
            None => {
                self.buffer = Buffer::new(size);
                self.buffer.is_some()
            }
        };
        assert!(done, "fairnif: no memory for a binary of {size} bytes");
    }

    fn data(&self) -> *mut u8 {
        self.buffer.as_ref().map_or(NonNull::dangling().as_ptr(), Buffer::data)
    }

    fn end(&mut self) -> *mut u8 {
        // Safety: `len` is at most the capacity.
        unsafe { self.data().add(self.len) }
    }

    /// The term that has the bytes; `None` for those that are copied.
    fn term(&self) -> Option<&Bin> {
        let buffer = self.buffer.as_ref().filter(|_| self.len > HEAP_BINARY)?;
        Some(self.term.get_or_init(|| buffer.give(self.len)))
    }
}

impl Default for OwnedBin {
    fn default() -> OwnedBin {
        OwnedBin::new()
    }
}

impl Deref for OwnedBin {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Safety: they are written. `term`, which took the buffer over, keeps it in place.
        unsafe { std::slice::from_raw_parts(self.data(), self.len) }
    }
}

impl DerefMut for OwnedBin {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.take_back();
        // Safety: they are written, and no term's.
        unsafe { std::slice::from_raw_parts_mut(self.data(), self.len) }
    }
}

impl fmt::Debug for OwnedBin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "OwnedBin({} bytes)", self.len)
    }
}

impl From<&[u8]> for OwnedBin {
    fn from(bytes: &[u8]) -> OwnedBin {
        let mut bin = OwnedBin::with_capacity(bytes.len());
        bin.extend_from_slice(bytes);
        bin
    }
}

impl From<OwnedBin> for Bin {
    fn from(mut bin: OwnedBin) -> Bin {
        if bin.term.get().is_none() {
            bin.shrink_to_fit();
        }
        bin.term().cloned().unwrap_or_else(|| Bin(Inner::Small(bin.as_slice().into())))
    }
}

impl Extend<u8> for OwnedBin {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        let bytes = bytes.into_iter();
        self.reserve(bytes.size_hint().0);
        bytes.for_each(|byte| self.push(byte));
    }
}

impl io::Write for OwnedBin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encoder for OwnedBin {
    fn encode<'a>(&self, env: Env<'a>) -> rustler::Term<'a> {
        match self.term() {
            Some(term) => term.encode(env),
            None => vm::copy_bytes(env, self),
        }
    }
}
