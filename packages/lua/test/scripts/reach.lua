-- The names of all that a script can reach.
local names = {}
for k, v in pairs(_G) do
    if type(v) == 'table' and v ~= _G then
        for f in pairs(v) do
            names[#names + 1] = k .. '.' .. f
        end
    else
        names[#names + 1] = k
    end
end
table.sort(names)
return table.concat(names, ' ')
