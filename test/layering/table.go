package layering

import "strings"

// Row lists our packages that those at one place of the tree may import, and the reason. Patterns are paths below the module; one that
// ends in /... names a package and everything below it.
type Row struct {
	// Package is a pattern. The longest that matches a package decides, and a package's name before a tree.
	Package string
	// May lists the packages that they may import. Packages may always import others of the
	// same row.
	May []string
	// Tests lists what their tests may import besides; see also [TestMay].
	Tests []string
	// Why is told to those who break the rule.
	Why string
}

// Table returns the rows, from the rim of the program to its leaves.
func Table() []Row {
	return []Row{
		{
			Package: "cmd/tollgate/...",
			May:     []string{"cmd/tollgate/dev", "config/...", "gateway/...", "policies/...", "ratelimit/...", "translate/...", "test/platform/..."},
			Why:     "the command puts everything together; of the test tree it has the emulator, for demo and platform, and nothing else",
		},
		{
			Package: "cmd/tollgate/dev/...",
			May:     []string{"config", "config/files", "config/strictyaml", "gateway/reference"},
			Tests:   []string{"gateway", "test/world"}, // the gateway that it is a client of
			Why:     "a client of the gateway like any other: it shares the watcher of files, the reader of YAML and the viewer of /docs, and no rule",
		},
		{
			Package: "config",
			May: []string{
				"config/egress", "config/fault", "config/files", "config/strictyaml", "gateway/identity", "gateway/settings", "gateway/upstream", "policies/logfile", "policies/operation",
				"policies/policyconfig", "ratelimit", "ratelimit/redisstore",
			},
			Tests: []string{"policies", "test/world"}, // for certificates
			Why:   "config reads the file into the settings, which bring no engine with them, and nothing below knows the file",
		},
		{
			Package: "gateway/settings",
			May:     []string{"config/egress", "config/encryption", "config/fault", "config/files", "config/strictyaml", "gateway/admin/adminapi", "gateway/identity", "gateway/overload", "gateway/problem", "gateway/webhook", "policies/catalog", "policies/logfile", "policies/policyconfig", "policies/ledger", "ratelimit"},
			Why:     "what the configuration says, without the engines that work by it",
		},
		{Package: "config/strictyaml/...", May: []string{"config/fault"}, Why: "strictyaml is a generic decoder: it knows no configuration"},
		leaf("config/fault", "faults of a configuration are values that every package can make"),
		leaf("config/panics", "a leaf: every part has goroutines that must not end the process"),
		leaf("config/encryption", "a leaf: which TLS is spoken, by every listener and client, and how state that callers keep is sealed"),
		leaf("config/files", "a leaf: how files that a configuration names are read"),
		{Package: "config/egress", May: []string{"config/encryption"}, Why: "a leaf: how servers outside are reached, and which a setting may name"},
		{
			Package: "gateway",
			May:     []string{"config/encryption", "config/fault", "config/strictyaml", "gateway/...", "policies/...", "ratelimit/...", "translate/..."},
			Tests:   []string{"config", "config/egress", "config/files", "test/world"}, // a gateway is configured as users do it
			Why:     "gateway assembles everything below it; configuration reaches it as data",
		},
		{
			Package: "gateway/filter/...",
			May:     []string{"gateway/approval", "gateway/audit", "gateway/identity", "gateway/overload", "gateway/problem", "gateway/route", "gateway/schema", "gateway/strictjson", "gateway/telemetry", "gateway/upstream", "policies/...", "ratelimit/..."},
			Tests:   []string{"config/strictyaml", "gateway/settings"}, // for providers of metrics
			Why:     "filters use the leaves and know neither the doors nor how they are assembled",
		},
		{
			Package: "gateway/explain/...",
			May:     []string{"gateway/approval", "gateway/approval/grants", "gateway/filter", "gateway/identity", "gateway/problem", "gateway/route", "gateway/schema", "gateway/strictjson", "gateway/upstream", "policies/...", "ratelimit"},
			Tests:   []string{"gateway/telemetry"}, // to make exchanges as the chain leaves them
			Why:     "explanations stand on the chain, which knows nothing of them",
		},
		{
			Package: "gateway/reverseproxy/...",
			May:     []string{"gateway/filter", "gateway/listen", "gateway/route", "gateway/settings", "gateway/telemetry", "gateway/wire"},
			Why:     "a door drives the chain and knows no stage: what it did itself, the other door would not; its connections come from gateway/listen",
		},
		{
			Package: "gateway/extproc/...",
			May:     []string{"gateway/filter", "gateway/problem", "gateway/route", "gateway/telemetry"},
			Tests:   []string{"gateway/identity", "gateway/upstream", "policies/ledger"}, // to make exchanges as stages leave them
			Why:     "a door drives the chain and knows no stage: what it did itself, the other door would not",
		},
		{
			Package: "gateway/envoy",
			May:     []string{"config/encryption", "config/fault", "gateway/admin/adminapi", "gateway/filter", "gateway/settings", "gateway/store", "gateway/telemetry", "gateway/view", "ratelimit/redisstore"},
			Tests:   []string{"config/strictyaml", "gateway/schema"},
			Why:     "a feature: the configuration of Envoys and the registry of gateways",
		},
		{
			Package: "gateway/platform",
			May:     []string{"gateway/filter", "gateway/reference", "gateway/route", "gateway/schema", "gateway/settings", "gateway/telemetry", "gateway/upstream", "policies/operation"},
			Why:     "the clients of the platform are made of the configuration",
		},
		{
			Package: "gateway/alerts",
			May:     []string{"gateway/admin", "gateway/admin/adminapi", "gateway/approval", "gateway/approval/grants", "gateway/decisions", "gateway/money", "gateway/settings", "gateway/store", "gateway/tasks", "gateway/telemetry", "gateway/view", "gateway/webhook", "policies", "policies/catalog", "policies/operation", "policies/ledger"},
			Tests:   []string{"config/egress", "config/strictyaml", "gateway/store", "policies/policyconfig"}, // to make configurations and grants
			Why:     "a feature: receivers are told, whoever finds out",
		},
		{
			Package: "gateway/money",
			May:     []string{"gateway/admin", "gateway/admin/adminapi", "gateway/alerts", "gateway/audit", "gateway/callers", "gateway/filter", "gateway/idempotency", "gateway/problem", "gateway/schema", "gateway/settings", "gateway/store", "gateway/strictjson", "gateway/telemetry", "gateway/upstream", "gateway/view", "policies", "policies/catalog", "policies/operation", "policies/ledger", "policies/ledger/redisstore", "ratelimit", "ratelimit/redisstore"},
			Tests:   []string{"gateway/identity"}, // to make exchanges
			Why:     "a feature: the ledger and what keeps it, for the chain and for operators",
		},
		{
			Package: "gateway/legacy",
			May:     []string{"gateway/admin", "gateway/admin/adminapi", "gateway/filter", "gateway/identity", "gateway/overload", "gateway/problem", "gateway/route", "gateway/schema", "gateway/settings", "gateway/strictjson", "gateway/tasks", "gateway/telemetry", "gateway/view", "policies/operation", "translate/..."},
			Tests:   []string{"config"}, // to read the configuration of a page
			Why:     "a feature: the retired interfaces and their callers; nothing but the root, the console and the command line imports it",
		},
		{
			Package: "gateway/approval/grants",
			May: []string{
				"gateway/approval", "gateway/filter", "gateway/problem", "gateway/strictjson", "policies", "policies/catalog", "policies/decisionlog", "policies/operation",
				"policies/ledger",
			},
			Tests: []string{"gateway/identity", "gateway/schema"}, // to make exchanges
			Why:   "a feature: calls that pass because they were approved",
		},
		{
			Package: "gateway/decisions",
			May:     []string{"gateway/admin/adminapi", "gateway/explain", "gateway/filter", "gateway/problem", "gateway/settings", "gateway/store", "gateway/tasks", "gateway/telemetry", "gateway/view", "policies/decisionlog", "policies/logfile", "policies/ledger"},
			Tests:   []string{"gateway/identity"},
			Why:     "a feature: decisions are kept",
		},
		{
			Package: "gateway/listen",
			May:     []string{"config/encryption", "config/fault", "gateway/problem", "gateway/settings", "gateway/telemetry", "gateway/view", "gateway/wire"},
			Why:     "connections are bounded, encrypted and judged before a door gets them",
		},
		{
			Package: "gateway/operator",
			May:     []string{"config/fault", "config/panics", "gateway/admin", "gateway/admin/adminapi", "gateway/approval", "gateway/callers", "gateway/decisions", "gateway/envoy", "gateway/explain", "gateway/filter", "gateway/identity", "gateway/money", "gateway/schema", "gateway/settings", "gateway/store", "gateway/strictjson", "gateway/upstream", "gateway/view", "policies", "policies/catalog", "policies/decisionlog", "policies/nextstate", "policies/isolate/...", "policies/compiler", "policies/operation", "policies/policyinput", "policies/replay", "policies/ledger", "ratelimit"},
			Tests:   []string{"gateway", "policies/logfile", "policies/policyconfig", "test/world", "config", "config/strictyaml"}, // the gateway whose decisions are decided again
			Why:     "a feature: operators ask about the whole gateway",
		},
		{
			Package: "gateway/callers",
			May:     []string{"config/fault", "config/panics", "config/strictyaml", "gateway/admin", "gateway/admin/adminapi", "gateway/audit", "gateway/filter", "gateway/identity", "gateway/problem", "gateway/reference", "gateway/route", "gateway/schema", "gateway/settings", "gateway/store", "gateway/view", "policies", "policies/catalog", "policies/compiler", "policies/operation", "policies/policyinput", "policies/ledger", "ratelimit"},
			Why:     "a feature: who may call, and for what",
		},
		{
			Package: "gateway/admin/...",
			May:     []string{"config/fault", "config/panics", "gateway/admin/adminapi", "gateway/audit", "gateway/identity", "gateway/settings", "gateway/wire", "ratelimit"},
			Tests:   []string{"gateway"}, // for the rows of all features
			Why:     "the admin listener knows its admins and rows",
		},
		{
			Package: "gateway/ui/chart",
			Tests:   []string{"test/world"}, // golden files
			Why:     "charts are drawn from plain values",
		},
		{
			Package: "gateway/ui",
			May:     []string{"config/encryption", "config/panics", "gateway/admin", "gateway/admin/adminapi", "gateway/alerts", "gateway/approval", "gateway/audit", "gateway/callers", "gateway/decisions", "gateway/envoy", "gateway/explain", "gateway/identity", "gateway/legacy", "gateway/money", "gateway/operator", "gateway/problem", "gateway/reference", "gateway/selfservice", "gateway/settings", "gateway/store", "gateway/ui/chart", "gateway/wire", "policies/replay"},
			Tests:   []string{"gateway", "gateway/money", "gateway/route", "policies/ledger", "policies/ledger/redisstore", "test/world"}, // the gateway whose rows and routes they ask, and its records
			Why:     "pages stand on the rows of the admin listener and the routes of callers, and know no feature but by its answers",
		},
		{
			Package: "gateway/selfservice",
			May:     []string{"gateway/admin/adminapi", "gateway/approval", "gateway/audit", "gateway/callers", "gateway/decisions", "gateway/explain", "gateway/filter", "gateway/identity", "gateway/money", "gateway/problem", "gateway/reference", "gateway/route", "gateway/settings", "gateway/view", "policies/catalog"},
			Tests:   []string{"gateway/telemetry"}, // the event of an exchange
			Why:     "what callers see of themselves is a row of operators with a narrower scope",
		},
		{Package: "gateway/admin/adminapi", May: []string{"config/fault"}, Why: "a leaf: what can be asked, whoever answers and whoever asks"},
		{
			Package: "gateway/audit",
			May:     []string{"config/files", "gateway/admin/adminapi", "gateway/settings", "gateway/tasks", "gateway/telemetry", "gateway/webhook", "policies/logfile"},
			Why:     "a feature: a chain of lines in a file, its receivers, and its rows",
		},
		{Package: "gateway/overload/...", May: []string{"config/fault"}, Why: "a leaf: what is done at once"},
		{Package: "gateway/tasks", May: []string{"config/panics"}, Why: "a leaf: work beside requests, whatever it is"},
		{Package: "gateway/webhook/...", May: []string{"config/egress", "config/fault", "config/strictyaml"}, Why: "a leaf: deliveries to receivers outside"},
		{
			Package: "gateway/approval",
			May:     []string{"gateway/admin/adminapi", "gateway/settings", "gateway/store", "gateway/view", "policies/catalog"},
			Why:     "a feature: requests for approval and their answers",
		},
		{
			Package: "gateway/idempotency",
			May:     []string{"gateway/filter", "gateway/problem", "gateway/strictjson", "gateway/tasks", "gateway/upstream", "gateway/wire", "policies/operation", "policies/ledger/..."},
			Tests:   []string{"gateway/telemetry"}, // for the event of an exchange
			Why:     "a feature: intents in hand, in the ledger's store, and their stages in the chain",
		},
		{
			Package: "gateway/store",
			May:     []string{"ratelimit"},
			Why:     "a leaf: the shared state in Redis",
		},
		{
			Package: "gateway/view",
			May:     []string{"gateway/settings", "policies/ledger"},
			Why:     "what is in force, as values: no engine and no client",
		},
		{
			Package: "gateway/identity/...",
			May:     []string{"config/egress", "config/fault", "config/panics", "config/strictyaml"},
			Why:     "credentials become callers, and secrets go no further",
		},
		leaf("gateway/problem/...", "a leaf: refusals as data"),
		leaf("gateway/reference/...", "a leaf: the pages callers read, as files"),
		leaf("gateway/route/...", "a leaf: what matches, from data"),
		{
			Package: "gateway/schema/...",
			May:     []string{"config/fault"},       // for the names that misspelt ones resemble
			Tests:   []string{"policies/operation"}, // to write what policies are told of the description
			Why:     "a leaf: the API's description",
		},
		leaf("gateway/strictjson/...", "a leaf: JSON that two readers cannot read differently"),
		{Package: "gateway/telemetry/...", May: []string{"gateway/overload", "gateway/settings"}, Tests: []string{"config/strictyaml"}, Why: "a leaf: what is told of an exchange"},
		{
			Package: "gateway/upstream/...",
			May:     []string{"config/egress", "config/encryption", "gateway/schema", "gateway/strictjson", "policies/catalog", "policies/operation", "policies/ledger"},
			Why:     "how the platform is called, and what an organisation has there",
		},
		leaf("gateway/wire/...", "a leaf: the bytes of HTTP/1.1, judged before anything else reads them"),
		{
			Package: "policies",
			May: []string{
				"config/fault", "config/files", "config/panics", "policies/bundle", "policies/catalog", "policies/nextstate", "policies/isolate", "policies/compiler", "policies/operation", "policies/policyinput", "policies/regosandbox", "policies/policyconfig",
			},
			Tests: []string{"config/egress"}, // to say where bundles are
			Why:   "the engine is a library of its own: it imports its parts, and of ours nothing else but faults and the reading of files",
		},
		{Package: "policies/policyconfig", May: []string{"config/egress", "config/fault", "config/files", "policies/logfile"}, Why: "a leaf: what the configuration says, without an engine"},
		{Package: "policies/logfile", May: []string{"config/fault", "config/files"}, Why: "a leaf: lines in files that rotate"},
		leaf("policies/operation", "a leaf: what is known of each operation"),
		leaf("policies/rego", "a leaf: the library's files"),
		leaf("policies/isolate", "a leaf: what runs child processes knows neither Rego nor policies"),
		leaf("policies/regosandbox", "a leaf: what confines Rego knows no policy"),
		{Package: "policies/catalog", May: []string{"config/fault", "policies/operation"}, Why: "prices follow from operations and what they lead to"},
		{Package: "policies/nextstate", May: []string{"policies/operation"}, Why: "the state after a change follows from the operation"},
		{Package: "policies/policyinput", May: []string{"config/fault", "policies/catalog", "policies/operation"}, Why: "what a policy may know is data: it knows no policy"},
		{
			Package: "policies/compiler",
			May:     []string{"config/fault", "config/files", "config/strictyaml", "policies/operation", "policies/policyinput", "policies/rego", "policies/regosandbox", "policies/policyconfig"},
			Why:     "policies are loaded without the engine that evaluates them",
		},
		{
			Package: "policies/bundle",
			May:     []string{"config/fault", "config/files", "policies/isolate", "policies/compiler", "policies/regosandbox", "policies/policyconfig"},
			Tests:   []string{"config/egress"}, // to say where bundles are
			Why:     "a bundle is one way to get what is loaded",
		},
		{Package: "policies/authoring", May: []string{"config/files", "policies", "policies/compiler", "policies/policyinput", "policies/regosandbox", "policies/policyconfig"}, Why: "tools for authors of policies stand on the engine"},
		{
			Package: "policies/ledger/redisstore",
			May:     []string{"policies/ledger", "ratelimit", "ratelimit/redisstore"},
			Tests:   []string{"policies/operation"}, // to list resources
			Why:     "the ledger in Redis: the limiter's store, which is on the same server, knows whether it is the server that it was",
		},
		{
			Package: "policies/...",
			May:     []string{"config/egress", "config/fault", "config/files", "config/panics", "config/strictyaml", "policies/..."},
			Why:     "tools around the engine are a library of their own: they import nothing else of ours but faults, paths, URLs and the grammar of files",
		},
		{Package: "ratelimit/...", May: []string{"config/encryption", "config/fault", "config/files", "config/panics"}, Why: "the limiter is a library of its own: it imports nothing of ours but leaves of config"},
		{
			Package: "translate/...",
			May:     []string{"config/fault", "translate/graphql/engine"},
			Why:     "the dialects are a library of their own: they import nothing of ours but faults",
		},
		{Package: "translate/graphql/engine", May: []string{"config/fault"}, Why: "the GraphQL language knows neither v2 nor the dialect"},
		leaf("test/platform/...", "the emulator shares no type with the gateway, or both would be wrong together"),
		leaf("test/otlptest/...", "a receiver knows the protocol, not what is sent"),
		leaf("test/envoytest/...", "the client side of ext_proc knows the protocol, not the gateway"),
		leaf("test/issuer", "an issuer of tokens shares nothing with what verifies them, or both would be wrong together"),
		{
			Package: "test/contract/...",
			May:     []string{"test/platform/..."},
			Why:     "what we believe of the platform is told without the gateway",
		},
		leaf("test/layering", "it reads the code and does not run it"),
		{
			Package: "test/world/...",
			May:     []string{"config", "gateway/...", "policies/decisionlog", "policies/policyinput", "policies/policyconfig", "ratelimit/redisstore"},
			Why:     "what tests of the whole gateway stand on knows neither a platform nor a case: those are each test's own",
		},
		{
			Package: "test/...",
			May:     []string{"cmd/...", "config/...", "gateway/...", "policies/...", "ratelimit/...", "translate/...", "test/..."},
			Why:     "stories over the whole program",
		},
	}
}

// leaf is a row that imports nothing of ours.
func leaf(pkg, why string) Row { return Row{Package: pkg, Why: why} }

// TestMay lists the packages that the tests of any package may import beside the package's own: servers and suites made
// for tests.
func TestMay() []string {
	return []string{"test/platform/...", "test/envoytest/...", "test/issuer", "test/otlptest/...", "test/redistest", "test/limits/storetest", "test/spend/storetest", "test/translate/storetest"}
}

// RowOf returns the row of a package, given by its path below the module, and false when it has none.
func RowOf(pkg string) (Row, bool) {
	var best Row
	for _, row := range Table() {
		if row.Package == pkg {
			return row, true
		}
		if Matches(row.Package, pkg) && len(row.Package) > len(best.Package) {
			best = row
		}
	}
	return best, best.Package != ""
}

// Allows reports whether the row's packages may import one.
func (r Row) Allows(pkg string) bool {
	if own, ok := RowOf(pkg); ok && own.Package == r.Package {
		return true
	}
	return matchesAny(r.May, pkg)
}

// Matches reports whether a pattern names a package.
func Matches(pattern, pkg string) bool {
	root, tree := strings.CutSuffix(pattern, "/...")
	return pkg == root || tree && strings.HasPrefix(pkg, root+"/")
}

func matchesAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if Matches(p, pkg) {
			return true
		}
	}
	return false
}
