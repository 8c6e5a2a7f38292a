package overload

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The figure of overload.open in docs/capacity.md is the figure that a container of that size gets,
// of which serve lets Go use 80 %.
func TestCapacityIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) MiB \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 3 {
		t.Fatalf("the page has %d sizes, want some", len(rows))
	}
	for _, row := range rows {
		var mebibytes, open, perSecond int
		for i, to := range []*int{&mebibytes, &open, &perSecond} {
			if *to, err = strconv.Atoi(row[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		limit := int64(mebibytes) << 20 / 100 * 80
		if got := DefaultConfig().withDefaults(2, limit).Open; got != open {
			t.Errorf("a container of %d MiB has %d requests under way, the page says %d", mebibytes, got, open)
		}
		if got := 4 * open; got != perSecond {
			t.Errorf("%d requests of 0.25 s are %d a second, the page says %d", open, got, perSecond)
		}
	}
}
