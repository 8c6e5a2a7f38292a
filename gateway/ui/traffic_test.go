package ui_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// The page of a denied request says why, what to change, how long each stage took, and how to send it again without its key.
func TestRequestPage(t *testing.T) {
	t.Parallel()
	c := start(t, strings.Replace(text, "    idle: {for: 1h}", "    budget: {per_hour: 5}\n    idle: {for: 1h}", 1), miniredis.RunT(t))
	p := c.as(t, "vera")
	c.pod(t, "1")
	c.pod(t, "3")
	_, _, list := p.get(c.URL + "/ui/requests?outcome=denied")
	if n := strings.Count(list, `class="linked"`); n != 2 { // one of them is the row that the script copies
		t.Errorf("%d rows of denied requests, want one and the blank one: %s", n, list)
	}
	id := regexp.MustCompile(`/ui/requests/(\w{26})`).FindStringSubmatch(list)
	if id == nil {
		t.Fatalf("no request on %s", list)
	}
	_, _, page := p.get(c.URL + "/ui/requests/" + id[1])
	for _, want := range []string{
		"3 GPUs per pod exceed the limit of 2", "What to change", `href="/ui/policies/gpu_count`, ">Timeline<", " µs</span>", "per hour", `href="/ui/keys/ann`,
		"Authorization: Bearer $TOLLGATE_KEY", `href="/ui/dry-run?`, `href="/ui/requests?key=ann`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a denied request has no %q: %s", want, page)
		}
	}
	if strings.Contains(page, "key_ann") || strings.Contains(page, "key_of_ann") {
		t.Error("the page shows a key")
	}
	_, _, list = p.get(c.URL + "/ui/requests?outcome=allowed&operation=createPod")
	id = regexp.MustCompile(`/ui/requests/(\w{26})`).FindStringSubmatch(list)
	resource := regexp.MustCompile(`/ui/resources/(\w+)`).FindStringSubmatch(list)
	if id == nil || resource == nil {
		t.Fatalf("no request with its resource on %s", list)
	}
	if _, _, page = p.get(c.URL + "/ui/requests/" + id[1]); !strings.Contains(page, "Budgets before and after") || !strings.Contains(page, "of $5.00") {
		t.Errorf("the page of an allowed request has no budgets: %s", page)
	}
	if _, _, list = p.get(c.URL + "/ui/requests?resource=" + resource[1]); !strings.Contains(list, id[1]) {
		t.Errorf("the requests about %s are without the one that created it: %s", resource[1], list)
	}
}

// The chart of requests follows the page's filters by outcome and team, and is left out for filters that the counts lack.
func TestTheChartFollowsTheFilters(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "vera")
	c.pod(t, "3")
	for query, want := range map[string]string{
		"": "Requests by outcome", "outcome=denied": "Denied requests", "team=research": "Requests by outcome, team research",
		"key=ann": "There is no chart for these filters", "policy=gpu_count": "There is no chart for these filters",
	} {
		_, _, page := p.get(c.URL + "/ui/requests?" + query)
		if chart := strings.Contains(page, `id="outcomes`); !strings.Contains(page, want) || chart != !strings.Contains(want, "no chart") {
			t.Errorf("%s: chart %t, want %q: %s", query, chart, want, page)
		}
	}
}

// An address without a page leads home. A slash too many is removed.
func TestNoPage(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "vera")
	if status, _, page := p.get(c.URL + "/ui/nothing/at/all"); status != http.StatusNotFound || !strings.Contains(page, "Page not found") || !strings.Contains(page, `aria-label="Pages"`) {
		t.Errorf("an address without a page: %d %s", status, page)
	}
	for path, want := range map[string]string{"/ui/keys/?sort=id": "/ui/keys?sort=id", "/ui/keys/ann/": "/ui/keys/ann"} {
		if status, header, _ := p.get(c.URL + path); status != http.StatusMovedPermanently || header.Get("Location") != want {
			t.Errorf("%s: %d to %q, want %q", path, status, header.Get("Location"), want)
		}
	}
}

// The page of a policy has its parameters, its effect by team and an example. Policies that an organisation does not have are not found.
func TestPolicyPage(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "vera")
	c.pod(t, "3")
	status, _, page := p.get(c.URL + "/ui/policies/gpu_count")
	for _, want := range []string{"Enforced", "<code>max_per_pod</code>", "<code>2</code>", "Results by team", "research", "Latest requests", "Configuration in force", "max_per_pod: 2"} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("the page of a policy: %d without %q: %s", status, want, page)
		}
	}
	if strings.Contains(page, "/ui/playground") {
		t.Error("a viewer is led to the playground")
	}
	if status, _, _ := p.get(c.URL + "/ui/policies/nothing"); status != http.StatusNotFound {
		t.Errorf("a policy that there is not: %d, want 404", status)
	}
	if _, _, list := p.get(c.URL + "/ui/policies"); !strings.Contains(list, `href="/ui/policies/gpu_count`) {
		t.Errorf("the list does not lead to the policy: %s", list)
	}
}
