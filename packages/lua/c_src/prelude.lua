-- The sandbox's own part, in Lua: nothing of C is ever below a script, which so can be left by the hook
-- wherever it is.
local call, names, set, own = ...
local yield, resume, create = own.yield, own.resume, own.create
local enter, leave, caught = own.enter, own.leave, own.caught
local scan, gsub_text, has_object = own.scan, own.gsub_text, own.has_object
local error, type, unpack, select = set.error, set.type, set.unpack, set.select
local sub, format, match = set.string.sub, set.string.format, set.string.match
local concat = set.table.concat

-- LuaJIT's own pcall does not look whether there is room on the stack.
-- And an error may be the hook's, that had none.
local function look_again(ok, ...)
    if not ok then caught() end
    return ok, ...
end

local raw_pcall = set.pcall
local function pcall(f, ...) return look_again(raw_pcall(f, ...)) end
set.pcall = pcall

-- A handler runs once the stack is unwound.
local function handle(handler, ok, ...)
    if ok then return ok, ... end
    return ok, handler(...)
end

function set.xpcall(f, handler, ...)
    return handle(handler, pcall(f, ...))
end

-- LuaJIT's own goes round for ever where __tostring is tostring.
local raw_tostring = set.tostring
local function tostring(value) return (raw_tostring(value)) end
set.tostring = tostring

local function strings(value, ...)
    if type(value) == 'table' then value = tostring(value) end
    if type(value) == 'table' then error("'__tostring' must return a string", 0) end
    if select('#', ...) == 0 then return value end
    return value, strings(...)
end

function set.string.format(text, ...)
    if has_object(...) then return format(text, strings(...)) end
    return format(text, ...)
end

-- Coroutines. One that the hook left is gone on with when the call is, and so are all that it is in. A
-- call of a function of Erlang's goes out, and its answer comes back, through all of them.
local go

local function step(thread, ok, first, ...)
    if leave(ok) then
        yield()
        return go(thread)
    end
    if ok and first == call then return go(thread, yield(call, ...)) end
    return ok, first, ...
end

function go(thread, ...)
    enter(thread)
    return step(thread, resume(thread, ...))
end

local function unwrap(ok, ...)
    if ok then return ... end
    error((...), 0)
end

local function wrap(f)
    local thread = create(f)
    return function(...) return unwrap(go(thread, ...)) end
end

set.coroutine = {
    yield = yield, resume = go, create = create, wrap = wrap,
    running = own.running, status = own.status
}

local function answer(ok, values)
    if ok then return unpack(values, 1, values.n) end
    error(values[1], 0)
end

for i = 1, #names do
    local name = names[i]
    set[name] = function(...) return answer(yield(call, name, ...)) end
end

-- Sorts short runs by insertion, and merges them, by `<' where there is no `before'. An order that contradicts
-- itself gives some order.
local function sort_run(t, from, to, before)
    for i = from + 1, to do
        local value, j = t[i], i - 1
        while j >= from and (before and before(value, t[j]) or not before and value < t[j]) do
            t[j + 1] = t[j]
            j = j - 1
        end
        t[j + 1] = value
    end
end

local function merge(source, target, from, middle, to, before)
    local i, j = from, middle
    for k = from, to - 1 do
        if i < middle and (j >= to or before and not before(source[j], source[i])
                           or not before and not (source[j] < source[i])) then
            target[k] = source[i]
            i = i + 1
        else
            target[k] = source[j]
            j = j + 1
        end
    end
end

function set.table.sort(t, before)
    local n = own.check_table(t)
    for from = 1, n, 8 do
        sort_run(t, from, from + 7 < n and from + 7 or n, before)
    end
    local source, target, width = t, {}, 8
    while width < n do
        for from = 1, n, 2 * width do
            local middle, to = from + width, from + 2 * width
            if middle > n then middle = n + 1 end
            if to > n then to = n + 1 end
            merge(source, target, from, middle, to, before)
        end
        source, target, width = target, source, 2 * width
    end
    if source ~= t then
        for i = 1, n do t[i] = source[i] end
    end
end

-- gsub with a function or a table: what a match is replaced with.
local function value_of(by, from, to, first, ...)
    if not from then return end
    if type(by) == 'function' then return from, to, by(first, ...) end
    return from, to, by[first]
end

function set.string.gsub(text, pattern, by, most)
    if type(by) ~= 'function' and type(by) ~= 'table' then
        return gsub_text(text, pattern, by, most)
    end
    local parts, n, at, done = {}, 0, 1, 0
    local size = own.check_text(text, pattern, most)
    local anchored = sub(pattern, 1, 1) == '^'
    local is_function = type(by) == 'function'
    local is_single = not match(pattern, '%(.*%(')
    while at <= size + 1 and not (most and done >= most) do
        local from, to, value
        if is_single then
            from, to, value = scan(text, pattern, at, true)
            if not from then break end
            if is_function then value = by(value) else value = by[value] end
        else
            from, to, value = value_of(by, scan(text, pattern, at, not is_function))
            if not from then break end
        end
        done = done + 1
        if not value then
            value = sub(text, from, to)
        elseif type(value) ~= 'string' and type(value) ~= 'number' then
            error('invalid replacement value (a ' .. type(value) .. ')', 0)
        end
        parts[n + 1] = sub(text, at, from - 1)
        parts[n + 2] = value
        n, at = n + 2, to + 1
        if to < from then
            n, at = n + 1, from + 1
            parts[n] = sub(text, from, from)
        end
        if anchored then break end
    end
    parts[n + 1] = sub(text, at)
    return concat(parts), done
end
