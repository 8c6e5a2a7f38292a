package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// journey counts the clicks that a task takes from the Overview.
type journey struct {
	*tab

	clicks int
}

// press clicks an element that the reader can see.
func (j *journey) press(t *testing.T, element string) {
	t.Helper()
	j.until(t, element+"?.checkVisibility() === true")
	j.clicks++
	eval[any](t, j.tab, element+".click()")
}

// find returns the script for the first element of a selector that has a text.
func find(selector, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.textContent.includes(%q))", selector, text)
}

// The questions that people bring are answered within a few clicks from the Overview.
func TestClicksFromTheOverview(t *testing.T) {
	c := serveTown(t)
	c.busyDays(t)
	train := c.pods(t)["train"]
	b := c.login(t)
	for _, task := range []struct {
		name string
		most int // clicks
		do   func(t *testing.T, j *journey)
	}{
		{"will we stay within the budget this month", 0, func(t *testing.T, j *journey) {
			t.Helper()
			shows(t, j.tab, "Team research")
			if tile := eval[string](t, j.tab, find(".tile", "Month to date")+`.textContent`); !strings.Contains(tile, "forecast") {
				t.Errorf("the tile of the month: %q, want its forecast", tile)
			}
		}},
		{"why was a call refused", 2, func(t *testing.T, j *journey) {
			t.Helper()
			j.press(t, find("main td a, main th a", "createPod"))
			shows(t, j.tab, "What to change")
			shows(t, j.tab, "3 GPUs per pod exceed the limit of 2")
		}},
		{"who spends most, and on what", 2, func(t *testing.T, j *journey) {
			t.Helper()
			j.press(t, find("main a", "Open in cost explorer"))
			j.until(t, `location.pathname === "/ui/cost"`)
			first := `document.querySelector('section[aria-label="Groups"] tbody tr')`
			j.until(t, first+`?.textContent.includes("research")`)
			j.press(t, first+`.querySelector("a")`)
			j.until(t, first+`?.textContent.includes("train")`)
		}},
		{"find an idle GPU, and snooze it", 2, func(t *testing.T, j *journey) {
			t.Helper()
			j.press(t, find("nav a", "Idle"))
			j.press(t, find("tbody tr", "sleeper")+`?.querySelector('form[action="/ui/spend/snooze"] button')`)
			shows(t, j.tab, "is snoozed until")
		}},
		{"which script still calls v1", 1, func(t *testing.T, j *journey) {
			t.Helper()
			j.press(t, find("nav a", "Legacy APIs"))
			shows(t, j.tab, "nightly-script")
		}},
		{"what changed in the configuration yesterday", 2, func(t *testing.T, j *journey) {
			t.Helper()
			j.press(t, find("nav a", "Configuration"))
			shows(t, j.tab, "500")
		}},
		{"a resource by its ID", 0, func(t *testing.T, j *journey) {
			t.Helper()
			j.do(t, chromedp.SendKeys(chromedp.CSS(`input[type="search"]`), train+"\r"))
			j.until(t, `location.pathname === "/ui/resources/`+train+`"`)
			shows(t, j.tab, "research")
		}},
		{"grant an approval", 1, func(t *testing.T, j *journey) {
			t.Helper()
			j.press(t, find("main button", "Approve"))
			shows(t, j.tab, "can send the request once")
		}},
	} {
		t.Run(task.name, func(t *testing.T) {
			b.do(t, chromedp.Navigate(c.admin.URL+"/ui/"))
			b.until(t, `document.querySelector("h1")?.textContent === "Overview"`)
			j := journey{tab: b}
			task.do(t, &j)
			if j.clicks > task.most {
				t.Errorf("%d clicks, want %d at most", j.clicks, task.most)
			}
		})
	}
	c.quiet(t, b)
}

// busyDays makes what the tasks look for: costs, an idle pod, a refusal, a script of v1, a changed configuration.
func (c *town) busyDays(t *testing.T) {
	t.Helper()
	for key, pod := range map[string]string{"key_of_ann": "train", "key_of_mel": "sleeper"} {
		if got := c.pod(t, key, pod, map[string]string{"train": "2", "sleeper": "1"}[pod]); got != http.StatusCreated {
			t.Fatalf("%s: %d, want 201", pod, got)
		}
	}
	busy, none := 90, 0
	for name, use := range map[string]*int{"sleeper": &none, "train": &busy} {
		if err := c.platform.ChangePod(c.pods(t)[name], platform.PodChange{GPUUtil: use, CPUUtil: use}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.gateway.Swap(c.configuration(t, strings.Replace(townOrg, "minute: 600", "minute: 500", 1))); err != nil {
		t.Fatal(err)
	}
	c.pass(t, 24*time.Hour)
	for range 11 {
		c.pass(t, time.Minute)
	}
	if got := c.pod(t, "key_of_ann", "big", "3"); got != http.StatusForbidden {
		t.Fatalf("three GPUs: %d, want 403", got)
	}
	c.legacyScript(t)
}
