defmodule LuajitTest do
  use ExUnit.Case
  doctest Luajit
end
