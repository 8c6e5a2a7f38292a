package layering

import "strings"

// Row is what the packages at one place of the tree may import of ours, and why. Patterns are paths below the module; one that ends in
// /... names a package and everything below it.
type Row struct {
	// Package is a pattern. The longest that matches a package decides.
	Package string
	// May lists what they may import. Packages may always import others of the same row.
	May []string
	// Why is told to those who break the rule.
	Why string
}

// Table returns the rows, from the rim of the program to its leaves.
func Table() []Row {
	return []Row{
		{
			"cmd/tollgate/...",
			[]string{"config/...", "gateway/...", "policies/...", "ratelimit/...", "translate/...", "test/platform/..."},
			"the command puts everything together; of the test tree it has the emulator, for demo and platform, and nothing else",
		},
		{
			"config",
			[]string{"config/strictyaml", "gateway/...", "policies/...", "ratelimit/...", "translate/..."},
			"config composes the Config of each package below it, and nothing below knows the file",
		},
		{"config/strictyaml/...", nil, "strictyaml is a generic decoder: it knows no configuration"},
		{
			"gateway",
			[]string{"gateway/...", "policies/...", "ratelimit/...", "translate/..."},
			"gateway assembles everything below it; configuration reaches it as data",
		},
		{
			"gateway/filter/...",
			[]string{
				"gateway/identity", "gateway/problem", "gateway/route", "gateway/schema", "gateway/strictjson", "gateway/telemetry",
				"gateway/upstream", "policies/...", "ratelimit/...", "translate/...",
			},
			"filters use the leaves and know neither the doors nor how they are assembled",
		},
		{
			"gateway/reverseproxy/...",
			[]string{"gateway/filter", "gateway/route", "gateway/telemetry"},
			"a door drives the chain and knows no stage: what it did itself, the other door would not",
		},
		{
			"gateway/extproc/...",
			[]string{"gateway/filter", "gateway/route", "gateway/telemetry"},
			"a door drives the chain and knows no stage: what it did itself, the other door would not",
		},
		{"gateway/xds/...", []string{"gateway/route"}, "Envoy's configuration is a function of ours, as data"},
		{"gateway/console/...", []string{"gateway/route", "gateway/telemetry"}, "the console reads what telemetry kept, and decides nothing"},
		{"gateway/admin/...", []string{"gateway/telemetry"}, "the operators' listener shows what telemetry knows"},
		{"gateway/identity/...", nil, "a leaf: keys become callers, and secrets end here"},
		{"gateway/problem/...", nil, "a leaf: refusals as data"},
		{"gateway/route/...", nil, "a leaf: what matches, from data"},
		{"gateway/schema/...", nil, "a leaf: the API's description"},
		{"gateway/strictjson/...", nil, "a leaf: JSON that two readers cannot read differently"},
		{"gateway/telemetry/...", nil, "a leaf: what is told of an exchange"},
		{"gateway/upstream/...", nil, "a leaf: how the platform is called"},
		{"policies/...", nil, "the policy engine is a library of its own: it imports nothing of ours"},
		{"ratelimit/...", nil, "the limiter is a library of its own: it imports nothing of ours"},
		{"translate/...", nil, "the dialects are a library of their own: they import nothing of ours"},
		{"test/platform/...", nil, "the emulator shares no type with the gateway, or both would be wrong together"},
		{"test/envoytest/...", nil, "the client side of ext_proc knows the protocol, not the gateway"},
		{"test/contract/...", []string{"test/platform/..."}, "what we believe of the platform is told without the gateway"},
		{"test/layering", nil, "reads the code, does not run it"},
		{"test/...", everything(), "stories over the whole program"},
	}
}

func everything() []string {
	return []string{"cmd/...", "config/...", "gateway/...", "policies/...", "ratelimit/...", "translate/...", "test/..."}
}

// TestMay lists what the tests of any package may import beside what the package may: servers and suites made for tests.
func TestMay() []string {
	return []string{"test/platform/...", "test/envoytest/...", "ratelimit/redistest", "ratelimit/storetest", "translate/storetest"}
}

// RowOf returns the row of a package, given by its path below the module, and false when it has none.
func RowOf(pkg string) (Row, bool) {
	var best Row
	for _, row := range Table() {
		if Matches(row.Package, pkg) && len(row.Package) > len(best.Package) {
			best = row
		}
	}
	return best, best.Package != ""
}

// Allows tells whether the row's packages may import one.
func (r Row) Allows(pkg string) bool {
	if own, ok := RowOf(pkg); ok && own.Package == r.Package {
		return true
	}
	return matchesAny(r.May, pkg)
}

// Matches tells whether a pattern names a package.
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
