package layering

import (
	"fmt"
	"go/scanner"
	"go/token"
	"strings"
)

// Budget is the size of one part of the code. A change that makes the part larger deletes as much in it, or raises the figure and gives the
// reason in its commit.
type Budget struct {
	// Of names the part.
	Of string
	// Packages are patterns as in [Row]; the longest that matches a package decides.
	Packages []string
	// Lines is the part's size outside of tests, as [CodeLines] counts it.
	Lines int
}

// MaxColumns is the width of a line of code, with tabs as one column. CodeLines counts a wider line as several.
const MaxColumns = 140

// CodeLines returns the number of lines of a Go file that hold code: comments and blank lines do not count, every line of a string does.
func CodeLines(file []byte) int {
	files := token.NewFileSet()
	f := files.AddFile("", -1, len(file))
	var s scanner.Scanner
	s.Init(f, file, nil, 0) // without ScanComments
	ends := map[int]int{}   // by line, the column after its last token
	for {
		pos, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			n := 0
			for _, column := range ends {
				n += 1 + max(0, column-2)/MaxColumns
			}
			return n
		case tok == token.SEMICOLON && text == "\n":
			continue // inserted at the end of a line
		case !tok.IsLiteral():
			text = tok.String()
		}
		at := files.Position(pos)
		for i, part := range strings.Split(text, "\n") {
			column := 1 + len(part)
			if i == 0 {
				column = at.Column + len(part)
			}
			ends[at.Line+i] = max(ends[at.Line+i], column)
		}
	}
}

// Budgets returns the parts of the product and the emulator. Every package belongs to one; packages of test/ other than the emulator
// have no budget.
func Budgets() []Budget {
	return []Budget{
		{"root: assembly, life cycle, features without a folder", []string{"gateway"}, 1337},
		{"features in folders of their own", []string{"gateway/callers", "gateway/operator", "gateway/listen", "gateway/decisions", "gateway/legacy", "gateway/alerts", "gateway/platform", "gateway/view", "gateway/envoy"}, 10390},
		{"chain, its stages and ports", []string{"gateway/filter"}, 6189},
		{"money: the ledger's keeper and the stages of the chain", []string{"gateway/money/..."}, 4431},
		{"idempotency, approvals and their store", []string{"gateway/idempotency/...", "gateway/approval", "gateway/approval/grants", "gateway/store"}, 2906},
		{"callers", []string{"gateway/identity"}, 1900},
		{"Envoy", []string{"gateway/extproc/..."}, 550},
		{"leaves of the gateway", []string{
			"gateway/overload", "gateway/problem", "gateway/reverseproxy",
			"gateway/route", "gateway/schema/...", "gateway/strictjson", "gateway/tasks", "gateway/upstream/...", "gateway/webhook", "gateway/wire",
		}, 9238},
		{"explanations, audit, telemetry, admin listener, pages of callers", []string{
			"gateway/explain", "gateway/audit", "gateway/telemetry", "gateway/admin/...", "gateway/reference",
		}, 4760},
		{"console", []string{"gateway/ui", "gateway/ui/chart"}, 8823},
		{"what callers see of themselves", []string{"gateway/selfservice"}, 502},
		{"policies", []string{"policies/..."}, 13875},
		{"ledger and its store", []string{"policies/ledger", "policies/ledger/redisstore"}, 8580},
		{"limits and their store", []string{"ratelimit", "ratelimit/redisstore"}, 3975},
		{"old dialects", []string{"translate/..."}, 11936},
		{"configuration", []string{"config/...", "gateway/settings"}, 6538},
		{"command line", []string{"cmd/tollgate"}, 6977},
		{"local development server", []string{"cmd/tollgate/dev"}, 2220},
		{"emulator of the platform", []string{"test/platform/..."}, 9175},
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
	MaxSettings = 345
	// MaxExchangeFields is the number of fields of filter.Exchange.
	MaxExchangeFields = 30
	// LargeLines is the number of lines above which a package is listed in [Large].
	LargeLines = 4450
	// WideImports is the number of imports of ours above which a package is listed in [Wide].
	WideImports = 15
)

// Large lists the packages of more than [LargeLines] lines. No other may become one.
func Large() []string {
	return []string{"cmd/tollgate", "gateway/filter", "gateway/ui", "policies/ledger", "test/platform"}
}

// Wide maps each package with more than [WideImports] imports of ours to their number. Only "gateway" gains
// one, for a new feature, and no other may become one.
func Wide() map[string]int {
	return map[string]int{
		"cmd/tollgate": 32, "gateway": 30, "gateway/callers": 21, "gateway/filter": 17, "gateway/legacy": 18, "gateway/money": 18, "gateway/operator": 30, "gateway/ui": 23,
	}
}

// Hold returns what is wrong with the size of a part that has so many lines, and "" when nothing is.
func Hold(b Budget, lines int) string {
	switch {
	case lines > b.Lines:
		return fmt.Sprintf("%d lines, at most %d: delete as much as you add, or raise the figure in test/layering/budget.go and say why in the commit", lines, b.Lines)
	case lines < b.Lines:
		return fmt.Sprintf("%d lines, fewer than before: lower the figure to %d in test/layering/budget.go", lines, lines)
	default:
		return ""
	}
}
