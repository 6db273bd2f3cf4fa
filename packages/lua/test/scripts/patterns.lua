-- What the functions of patterns answer for a text and a pattern, as text. (Not from behind the
-- text's end: there LuaJITs differ.)
local t, p = ...
local answers = {}

local function try(...)
    local answer = {pcall(...)}
    for i = 1, 6 do
        answer[i] = tostring(answer[i]):gsub('^.-:%d+: ', '')
    end
    answers[#answers + 1] = table.concat(answer, '|')
end

local function all()
    local found = {}
    for a, b in string.gmatch(t, p) do
        found[#found + 1] = tostring(a) .. ':' .. tostring(b)
    end
    return table.concat(found, ',')
end

try(string.find, t, p)
try(string.find, t, p, -1)
try(string.find, t, p, 1, true)
try(string.match, t, p)
try(string.match, t, p, -3)
try(string.gsub, t, p, '<%0>')
try(string.gsub, t, p, '%1', 1)
try(string.gsub, t, p, {a = 'A'})
try(string.gsub, t, p, function(x) return type(x) == 'string' and x:upper() end)
try(all)
return table.concat(answers, '\n')
