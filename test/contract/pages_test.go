package contract

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
)

// paged is a list that has pages, at most of so many records.
type paged struct {
	operation, member string
	most              int
	args              []string
}

// pages: five lists say whether more follows, and are the same list in pages of any size.
func pages(t *testing.T, c *client) {
	t.Helper()
	endpoint := c.want(t, 201, "createEndpoint", queueBody).text("id")
	c.tidy(t, "deleteEndpoint", endpoint)
	for i := range 3 {
		tpl := c.want(t, 201, "createTemplate", `{"name":"contract","image":"i:`+strconv.Itoa(i)+`"}`).text("id")
		c.tidy(t, "deleteTemplate", tpl)
		c.want(t, 200, "updateEndpoint", `{"image":"worker:`+strconv.Itoa(i+2)+`"}`, endpoint)
	}
	cursors := map[string]string{}
	for _, p := range []paged{
		{"listPods", "pods", 1000, nil},
		{"listEndpoints", "endpoints", 1000, nil},
		{"listTemplates", "templates", 1000, nil},
		{"listEndpointReleases", "releases", 1000, []string{endpoint}},
		{"listEndpointBuilds", "builds", 100, []string{endpoint}},
	} {
		whole, _ := p.walk(t, c, p.most)
		single, cursor := p.walk(t, c, 1)
		if !slices.Equal(whole, single) {
			t.Errorf("%s: %v in pages of one, want %v", p.operation, single, whole)
		}
		for _, limit := range []string{"0", strconv.Itoa(p.most + 1), "x", "1.5", ""} {
			p.refused(t, c, "?limit="+limit)
		}
		p.refused(t, c, "?cursor=")
		p.refused(t, c, "?cursor=nope")
		for other, foreign := range cursors {
			if other != p.operation {
				p.refused(t, c, "?cursor="+foreign)
			}
		}
		if cursor != "" {
			cursors[p.operation] = cursor
		}
	}
	if cursors["listTemplates"] == "" || cursors["listEndpointReleases"] == "" {
		t.Errorf("cursors: got %v, want those of templates and releases", cursors)
	}
	for _, operation := range []string{"listClusters", "listNetworkVolumes", "listRegistries", "listDelegations", "listSecrets", "listSandboxes", "getSshKeys"} {
		if a := c.want(t, 200, operation, ""); a.at("pagination") != nil {
			t.Errorf("%s is not paged: got %s", operation, a.body)
		}
	}
}

// walk reads a list to its end in pages of so many records, and returns the ids and the
// first cursor.
func (p paged) walk(t *testing.T, c *client, limit int) (ids []string, first string) {
	t.Helper()
	for query := "?limit=" + strconv.Itoa(limit); ; {
		a := c.want(t, 200, p.operation, "", append(slices.Clone(p.args), query)...)
		items := a.list(p.member)
		if len(items) > limit {
			t.Errorf("%s%s: got %d records", p.operation, query, len(items))
		}
		for _, item := range items {
			m, _ := item.(map[string]any)
			id, _ := m["id"].(string)
			ids = append(ids, id)
		}
		next := a.text("pagination.nextCursor")
		if more := a.at("pagination.hasNextPage"); more != (next != "") {
			t.Fatalf("%s%s: hasNextPage %v with cursor %q", p.operation, query, more, next)
		}
		if next == "" {
			return ids, first
		}
		if first == "" {
			first = next
		}
		query = "?limit=" + strconv.Itoa(limit) + "&cursor=" + escape(next)
	}
}

// refused fails the test unless the list refuses a query with 422, which not every list
// declares.
func (p paged) refused(t *testing.T, c *client, query string) {
	t.Helper()
	op := c.api.operation(t, p.operation)
	a := c.raw(t, op.method, c.url+op.fill(p.args)+query, c.key, nil)
	c.note(op.id, a.status)
	if a.status != http.StatusUnprocessableEntity || a.text("detail") == "" {
		t.Errorf("%s%s: got %d %s, want 422", p.operation, query, a.status, a.body)
	}
}
