package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

func newMigrate() *cobra.Command {
	return group("migrate", "Migrate from the retired interfaces: list their callers", "  tollgate migrate report --org acme")
}

// legacyPage returns a table of calls to the retired interfaces. The table has more columns for programs than for people.
func legacyPage(l *legacy.List, a asked) page {
	if !a.out.people() {
		t := sheet{{"org", "key", "program", "interface", "operation", "calls", "2xx", "4xx", "5xx", "first", "last", "v2", "lost"}}
		for _, c := range l.Calls {
			t.add(c.Org, c.Key, c.Agent, c.Dialect, c.Operation, c.Count, c.Statuses["2xx"], c.Statuses["4xx"], c.Statuses["5xx"],
				c.First, c.Last, strings.Join(c.V2, " "), strings.Join(usage.Names(c.Lost), " "))
		}
		return page{sheets: []sheet{t}}
	}
	if len(l.Calls) == 0 {
		return page{text: []string{"No calls to retired interfaces."}}
	}
	t := sheet{{"org", "key", "program", "interface", "operation", "calls", "failed", "last seen", "in v2", "not in v2"}}
	for _, c := range l.Calls {
		t.add(c.Org, c.Key, c.Agent, c.Dialect, c.Operation, c.Count, c.Statuses["4xx"]+c.Statuses["5xx"],
			c.Last, cmp.Or(strings.Join(c.V2, ", "), "nothing"), lostFields(c))
	}
	return page{sheets: []sheet{t}}
}

// lostFields lists the fields that have no equivalent in v2, most frequent first.
func lostFields(c legacy.Call) string {
	fields := usage.Names(c.Lost)
	for i, f := range fields {
		fields[i] = fmt.Sprintf("%s (%d)", f, c.Lost[f])
	}
	return strings.Join(fields, ", ")
}
