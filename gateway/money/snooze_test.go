package money

import (
	"strings"
	"testing"
	"time"
)

// A resource's name on a page is text, with any characters in it.
func TestKeepPageEscapes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 5, 0, 0, time.UTC)
	v := &snoozeView{Org: `a&b`, ID: `<script>{text}"'`, Expires: at, Target: `/tollgate/snooze?org=a&id="><b>`, For: 24 * time.Hour}
	page := v.html()
	for _, want := range []string{
		"<title>Snooze &lt;script&gt;{text}&#34;&#39;</title>", "<h1>&lt;script&gt;{text}&#34;&#39;</h1>",
		"organisation a&amp;b is idle", "snooze it for 24 hours",
		`action="/tollgate/snooze?org=a&amp;id=&#34;&gt;&lt;b&gt;">`, "until 2026-11-22 09:05 UTC.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	v.Target, v.Until = "", at
	if page := v.html(); strings.Contains(page, "<form") || !strings.Contains(page, "Snoozed until 2026-11-22 09:05 UTC.") {
		t.Errorf("the page of what is kept is\n%s", page)
	}
}
