package redisstore

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua
var luaFiles embed.FS

// source returns the concatenated Lua files with the given names.
func source(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		file, err := luaFiles.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // the names are constants
		}
		text.Write(file)
	}
	return text.String()
}

// script returns the script of the ledger with the given name.
func script(name string) *redis.Script {
	return nested(source("clock"), "local intents = {epoch = 0, writes = 0}\n"+source("ledger"), source("common", "changing"), source(name))
}

// callsScript returns the script for reservations and settlements. It creates the functions for each of them only if a call needs them.
func callsScript() *redis.Script {
	return nested(source("clock"), source("intent"), source("ledger"), source("common"), localFunction("reserving", "noting", "changing", "reserve")+
		localFunction("settling", "finishing", "changing", "settle")+source("calls"))
}

// nested returns a script of sources, each in a function inside the function of the previous source: Lua looks up variables of enclosing
// functions faster for a new closure than variables of the same function. A function may use 60 variables of enclosing functions.
func nested(sources ...string) *redis.Script {
	return redis.NewScript(strings.Join(sources, "\nreturn (function()\n") + strings.Repeat("\nend)()", len(sources)-1))
}

// localFunction declares a Lua function of the files with the given names. It returns the result of the last file.
func localFunction(name string, files ...string) string {
	return "local function " + name + "()\n" + source(files...) + "end\n"
}
