package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
)

func TestDollars(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{
		"0": "0.00", "0.004": "<0.01", "0.43274": "0.43", "1234567.891": "1,234,567.89", "-999.5": "-999.50", "-1000": "-1,000.00", "999.999": "1,000.00",
		"": "", "unknown": "unknown",
	} {
		if got := dollars(amount); got != want {
			t.Errorf("%q: %q, want %q", amount, got, want)
		}
	}
}

// The type of a cell decides its form: people get aligned columns, programs full amounts, and a terminal colours and bars.
func TestCells(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 13, 4, 5, 6, time.FixedZone("CET", 3600))
	s := sheet{{"name", "usd", "taken", "status", "at"}}
	s.add("a\tb", usd("1234.5678"), share(85), status(403), at)
	s.add("c", usd("0.5"), share(100), status(0), time.Time{})
	var programs strings.Builder
	if err := (&output{format: "csv"}).tables(&programs, []sheet{s}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ got, want string }{
		"people": {
			strings.Join(s.lines(map[int]int{}, false), "\n"),
			"NAME       USD  TAKEN  STATUS  AT\n" + oneLine("a\tb") + "   1,234.57   85 %     403  2026-11-29T12:04:05Z\nc         0.50  100 %          ",
		},
		"programs": {programs.String(), "name,usd,taken,status,at\na\tb,1234.5678,85,403,2026-11-29T12:04:05Z\nc,0.5,100,,\n"},
		"terminal": {
			s.lines(map[int]int{}, true)[1],
			oneLine("a\tb") + "   1,234.57  \x1b[33m████████▌   85 %\x1b[0m  \x1b[31m   403\x1b[0m  2026-11-29T12:04:05Z",
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n%q\nwant\n%q", name, tt.got, tt.want)
		}
	}
}

// A stream of decisions is a growing table; its end, and decisions that are missing, are reported.
func TestFollower(t *testing.T) {
	t.Parallel()
	var out, notes strings.Builder
	f := &follower{out: &output{format: "table"}, w: &out, notes: &notes, widths: make(map[int]int)}
	err := f.read(strings.NewReader(`: open

event: decision
data: {"decisionId":"d1","time":"2026-11-29T12:04:05Z","org":"acme","key":"ann","dialect":"v2","operation":"createPod","status":403,"reason":"too many"}

: alive

event: missed
data: {"missed":3}

event: end
data: {"reason":"the gateway drains"}

`))
	want := "DECISION  TIME  ORG  TEAM  KEY  OPERATION  STATUS  POLICIES  REASON\n" +
		"d1        2026-11-29T12:04:05Z  acme        ann  v2 createPod     403            too many\n"
	if out.String() != want {
		t.Errorf("wrote\n%s\nwant\n%s", out.String(), want)
	}
	if !strings.HasPrefix(notes.String(), "3 decisions skipped") || err == nil || !strings.Contains(err.Error(), "the gateway drains") {
		t.Errorf("notes %q, error %v", notes.String(), err)
	}
}

// A list of decisions ends with the flag for older decisions, if there can be some.
func TestOlderDecisions(t *testing.T) {
	t.Parallel()
	for next, want := range map[string][]string{"": nil, "2026-11-22T15:04:05.5Z": {"Older decisions: --before 2026-11-22T15:04:05.5Z"}} {
		if got := decisionsPage(&decisions.List{Next: next}, asked{}).text; !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}
