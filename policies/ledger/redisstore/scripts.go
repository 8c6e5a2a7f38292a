package redisstore

import (
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed ledger.lua
	ledgerSource string
	//go:embed common.lua
	commonSource string
	//go:embed changing.lua
	changingSource string
	//go:embed reserve.lua
	reserveSource string
	//go:embed settle.lua
	settleSource string
	//go:embed calls.lua
	callsSource string
	//go:embed adjust.lua
	adjustSource string
	//go:embed rebuild.lua
	rebuildSource string
	//go:embed post.lua
	postSource string
	//go:embed repair.lua
	repairSource string
	//go:embed offer.lua
	offerSource string
	//go:embed close.lua
	closeSource string
	//go:embed restore.lua
	restoreSource string
)

// script returns a script of the ledger.
func script(source string) *redis.Script {
	return nested(clockSource, "local intents = {epoch = 0, writes = 0}\n"+ledgerSource, commonSource+changingSource, source)
}

// callsScript returns the script for reservations and settlements. It creates the functions for each of them only if a call needs them.
func callsScript() *redis.Script {
	return nested(clockSource, intentSource, ledgerSource, commonSource, localFunction("reserving", notingSource, reserveSource)+
		localFunction("settling", finishingSource, changingSource, settleSource)+callsSource)
}

// nested returns a script of sources, each in a function inside the function of the previous source: Lua looks up variables of enclosing
// functions faster for a new closure than variables of the same function. A function may use 60 variables of enclosing functions.
func nested(sources ...string) *redis.Script {
	return redis.NewScript(strings.Join(sources, "\nreturn (function()\n") + strings.Repeat("\nend)()", len(sources)-1))
}

// localFunction declares a Lua function that returns the result of its last source.
func localFunction(name string, sources ...string) string {
	return "local function " + name + "()\n" + strings.Join(sources, "") + "end\n"
}
