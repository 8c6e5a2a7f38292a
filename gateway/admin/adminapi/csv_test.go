package adminapi_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

func TestWriteCSV(t *testing.T) {
	var b strings.Builder
	err := adminapi.WriteCSV(&b, [][]string{
		{"name", "usd"}, {"=HYPERLINK(\"http://x\")", "-1.5"}, {"+1-2", "+3"}, {"@SUM(A1)", "1e6"}, {"-cmd|' /C calc'!A0", ""}, {"\tx", "a=b"},
	})
	const want = "name,usd\n\"'=HYPERLINK(\"\"http://x\"\")\",-1.5\n'+1-2,+3\n'@SUM(A1),1e6\n'-cmd|' /C calc'!A0,\n'\tx,a=b\n"
	if err != nil || b.String() != want {
		t.Errorf("got %q (%v), want %q", b.String(), err, want)
	}
}
