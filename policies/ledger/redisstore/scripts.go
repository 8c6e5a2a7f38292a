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

// callsScript returns the script that makes reservations and settlements. It makes the functions of either only if there is one.
func callsScript() *redis.Script {
	return nested(clockSource, intentSource, ledgerSource, commonSource, localFunction("reserving", notingSource, reserveSource)+
		localFunction("settling", finishingSource, changingSource, settleSource)+callsSource)
}

// nested returns a script of sources, each in a function inside that of the one before: Lua finds a variable for a new closure faster among
// those of enclosing functions than among those of its own. A function may use 60 variables of enclosing ones.
func nested(sources ...string) *redis.Script {
	return redis.NewScript(strings.Join(sources, "\nreturn (function()\n") + strings.Repeat("\nend)()", len(sources)-1))
}

// localFunction declares a function that returns what the last of its sources returns.
func localFunction(name string, sources ...string) string {
	return "local function " + name + "()\n" + strings.Join(sources, "") + "end\n"
}
