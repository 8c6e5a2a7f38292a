package layering

import "fmt"

// Budget is the size of one part of the code. A change that makes the part larger deletes as much in it, or raises the figure and gives the
// reason in its commit.
type Budget struct {
	// Of names the part.
	Of string
	// Packages are patterns as in [Row]; the longest that matches a package decides.
	Packages []string
	// Lines counts lines of Go outside of tests.
	Lines int
}

// BudgetSlack is the percentage that a part may be above its figure. When a part is that much below it, lower the figure.
const BudgetSlack = 3

// Budgets returns the parts of the product and the emulator. Every package belongs to one; packages of test/ other than the emulator
// have no budget.
func Budgets() []Budget {
	return []Budget{
		{"root: assembly, life cycle, features without a folder", []string{"gateway"}, 1659},
		{"features in folders of their own", []string{"gateway/access", "gateway/account", "gateway/callers", "gateway/check", "gateway/engines", "gateway/dialects", "gateway/tokens", "gateway/listen", "gateway/questions", "gateway/fleet", "gateway/decisions", "gateway/billtypes", "gateway/keep", "gateway/approval/answers", "gateway/retired", "gateway/revisions", "gateway/limits", "gateway/alerts", "gateway/platform", "gateway/tenants", "gateway/audit/ship", "gateway/coverage", "gateway/envoy"}, 7300},
		{"chain, its stages and ports", []string{"gateway/filter"}, 6883},
		{"money: the ledger's keeper and the stages of the chain", []string{"gateway/money/..."}, 3654},
		{"idempotency, approvals and their store", []string{"gateway/once/...", "gateway/approval", "gateway/approval/grants", "gateway/cas"}, 2620},
		{"callers", []string{"gateway/identity", "gateway/oidc", "gateway/keystore", "gateway/trie"}, 2810},
		{"Envoy", []string{"gateway/xds", "gateway/extproc/..."}, 3062},
		{"leaves of the gateway", []string{
			"gateway/balancer", "gateway/connlimit", "gateway/groupcommit", "gateway/journal", "gateway/overload", "gateway/problem", "gateway/reverseproxy",
			"gateway/route", "gateway/schema/...", "gateway/strictjson", "gateway/tally", "gateway/tasks", "gateway/upstream/...", "gateway/webhook", "gateway/wire",
		}, 11337},
		{"explanations, archive, audit, telemetry, operators' listener, pages of callers", []string{
			"gateway/explain", "gateway/archive", "gateway/audit", "gateway/telemetry", "gateway/admin/...", "gateway/reference",
		}, 8953},
		{"console", []string{"gateway/ui"}, 2766},
		{"what callers see of themselves", []string{"gateway/selfservice"}, 535},
		{"policies", []string{"policies/..."}, 17296},
		{"ledger and its store", []string{"policies/spend", "policies/spend/redisstore"}, 9747},
		{"limits and their store", []string{"ratelimit", "ratelimit/group", "ratelimit/metrics", "ratelimit/redisstore"}, 5577},
		{"old dialects", []string{"translate/..."}, 15731},
		{"configuration", []string{"config/...", "gateway/settings"}, 6898},
		{"command line", []string{"cmd/tollgate"}, 6768},
		{"local development server", []string{"cmd/tollgate/dev"}, 2537},
		{"emulator of the platform", []string{"test/platform/..."}, 10833},
	}
}

// BudgetOf returns the part that a package belongs to, given by its path below the module, and false when it has none.
func BudgetOf(pkg string) (Budget, bool) {
	var best Budget
	longest := ""
	for _, b := range Budgets() {
		for _, pattern := range b.Packages {
			if Matches(pattern, pkg) && len(pattern) > len(longest) {
				best, longest = b, pattern
			}
		}
	}
	return best, longest != ""
}

const (
	// MaxSettings is the number of settings in docs/configuration.md; sections, and lists and mappings with settings of their own, do not count.
	MaxSettings = 415
	// MaxExchangeFields is the number of fields of filter.Exchange.
	MaxExchangeFields = 30
	// LargeLines is the number of lines above which a package is listed in [Large].
	LargeLines = 5500
	// WideImports is the number of imports of ours above which a package is listed in [Wide].
	WideImports = 15
)

// Large lists the packages of more than [LargeLines] lines. No other may become one.
func Large() []string {
	return []string{"cmd/tollgate", "gateway/filter", "policies/spend", "test/platform"}
}

// Wide maps each package with more than [WideImports] imports of ours to their number. They gain none, and no other may become one.
func Wide() map[string]int {
	return map[string]int{"cmd/tollgate": 31, "gateway": 56, "gateway/filter": 21, "gateway/settings": 24}
}

// Hold words the fault of the size of a part that has so many lines, "" for nothing.
func Hold(b Budget, lines int) string {
	slack := b.Lines * BudgetSlack / 100
	switch {
	case lines > b.Lines+slack:
		return fmt.Sprintf("%d lines, at most %d: delete as much as you add, or raise the figure in test/layering/budget.go and say why in the commit", lines, b.Lines+slack)
	case lines < b.Lines-slack:
		return fmt.Sprintf("%d lines, well below %d: lower the figure to %d in test/layering/budget.go", lines, b.Lines, lines)
	default:
		return ""
	}
}
