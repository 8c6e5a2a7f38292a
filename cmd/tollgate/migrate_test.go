package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
)

func legacyCalls() []legacy.Call {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return []legacy.Call{
		{
			Org: "acme", Key: "ann", Dialect: "v1", Operation: "createPod", Agent: "+cmd|calc", Count: 5, First: at, Last: at.Add(time.Hour),
			Statuses: map[string]int64{"2xx": 3, "4xx": 1, "5xx": 1}, V2: []string{"createPod"}, Lost: map[string]int64{"locked": 1, "minUploadMbps": 3},
		},
		{Org: "acme", Key: "bob", Dialect: "graphql", Operation: "podBidResume", Agent: "none", Count: 1, First: at, Last: at},
	}
}

func TestLegacyReports(t *testing.T) {
	var table, csv strings.Builder
	write := func(w io.Writer, format string) {
		out := &output{format: format}
		answer := legacy.List{Calls: legacyCalls()}
		if err := out.tables(w, legacyPage(&answer, asked{out: out}).sheets); err != nil {
			t.Fatal(err)
		}
	}
	write(&table, "table")
	wantTable := `ORG   KEY  PROGRAM    INTERFACE  OPERATION     CALLS  FAILED  LAST SEEN             IN V2      NOT IN V2
acme  ann  +cmd|calc  v1         createPod         5       2  2026-11-21T11:00:00Z  createPod  minUploadMbps (3), locked (1)
acme  bob  none       graphql    podBidResume      1       0  2026-11-21T10:00:00Z  nothing    
`
	if diff := cmp.Diff(wantTable, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	write(&csv, "csv")
	// A program may call itself anything; a spreadsheet must not compute it.
	wantSheet := `org,key,program,interface,operation,calls,2xx,4xx,5xx,first,last,v2,lost
acme,ann,'+cmd|calc,v1,createPod,5,3,1,1,2026-11-21T10:00:00Z,2026-11-21T11:00:00Z,createPod,minUploadMbps locked
acme,bob,none,graphql,podBidResume,1,0,0,0,2026-11-21T10:00:00Z,2026-11-21T10:00:00Z,,
`
	if diff := cmp.Diff(wantSheet, csv.String()); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
}
