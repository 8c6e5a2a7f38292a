package v1

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The page operators read lists every setting with its default, and every field
// that is lost.
func TestThePageIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/v1.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	defaults := reflect.ValueOf(DefaultConfig())
	for i := range defaults.NumField() {
		name := defaults.Type().Field(i).Tag.Get("yaml")
		if name == "-" {
			continue // has a page of its own
		}
		want := fmt.Sprint(defaults.Field(i).Interface())
		if d, ok := reflect.TypeAssert[time.Duration](defaults.Field(i)); ok {
			want = fmt.Sprintf("%ds", int(d.Seconds()))
		}
		if row := "`" + name + "` (" + want + ")"; !strings.Contains(page, row) {
			t.Errorf("docs/v1.md lacks the setting %s with its default: %q", name, row)
		}
	}
	_, lost, _ := strings.Cut(page, "## What is lost")
	for _, row := range operations() {
		for _, f := range row.form {
			if (f.handling == warned || f.handling == refused) && !strings.Contains(lost, "`"+f.name+"`") {
				t.Errorf("docs/v1.md does not say what becomes of %s of %s", f.name, row.ID)
			}
		}
	}
	operation := regexp.MustCompile("`([a-z]+[A-Z][A-Za-z]+)`")
	_, table, _ := strings.Cut(page, "## Operations and their v2 calls")
	table, _, _ = strings.Cut(table, "## ")
	named := map[string]bool{}
	for _, m := range operation.FindAllStringSubmatch(table, -1) {
		named[m[1]] = true
	}
	for _, row := range operations() {
		if row.V2 != "" && !row.Public && !named[row.V2] {
			t.Errorf("docs/v1.md does not say that %s becomes %s", row.ID, row.V2)
		}
	}
}
